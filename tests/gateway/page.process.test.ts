import type { Browser, BrowserContext, BrowserContextOptions, Page, Route } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/temporary.js'
import { findChromium, launchChromium } from './support/chromium.js'
import { startGateway } from './support/gateway-process.js'

const executable = findChromium()
const DESK = { width: 1280, height: 800 }
const PHONE = { width: 390, height: 844 }

if (executable === undefined && process.env['TIDEMARK_CI'] === '1') {
  throw new Error('No Chromium was found, and CI must not go without it. Install it, or set CHROMIUM_PATH.')
}

describe.skipIf(executable === undefined)(
  `the page in a real browser${executable === undefined ? ' (skipped: no Chromium found; install it or set CHROMIUM_PATH)' : ''}`,
  () => {
    let browser: Browser

    beforeAll(async () => {
      browser = await launchChromium(executable ?? '')
    })
    afterAll(() => browser.close())

    /** Opens the page and fails the test if it asks anybody else, or complains. */
    async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
      const context: BrowserContext = await browser.newContext({ viewport: DESK, ...options })
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      const complaints: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith(url)) complaints.push(`asked ${request.url()}`)
      })
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on('console', (message) => {
        // The browser's own words for a gateway that is away, and for a request that was refused.
        const isBreak = /ERR_|status of 40[39]/.test(message.text())
        if (message.type() === 'error' && !isBreak) complaints.push(message.text())
      })
      onTestFinished(async () => {
        await context.close()
        expect(complaints).toEqual([])
      })
      await page.goto(url)
      await page.getByLabel('Your message').waitFor()
      return page
    }

    const question = (page: Page) => page.getByLabel('Your message')
    const answers = (page: Page) => page.locator('.message.assistant .said')

    async function say(page: Page, text: string): Promise<void> {
      await question(page).fill(text)
      await question(page).press('Enter')
      await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Undo' }).waitFor()
    }

    test('two chats: what was said in one is recalled in the other, with a card that shows it', async () => {
      const { url } = await startGateway({ directory: await temporaryDirectory() })
      const page = await open(url)
      await page.getByRole('heading', { name: 'No finished turn is ever forgotten' }).waitFor()
      await say(page, 'I live in Lisbon.')
      await page.getByText('1 turn to learn').waitFor()
      await page.getByRole('button', { name: 'New chat' }).first().click()
      const memory = page.getByRole('complementary', { name: 'Memory' })
      await memory.getByText('I live in Lisbon').waitFor()
      await say(page, 'Where do I live?')
      await page.locator('.card', { hasText: 'Recalled from memory' }).getByText('I live in Lisbon').first().waitFor()
      expect(await answers(page).last().textContent()).toContain('“I live in Lisbon” (from memory)')
      await say(page, 'What is 17 * 23?')
      await page.locator('.card', { hasText: 'calculator' }).getByText('17 * 23 → 391').waitFor()

      // Back to the first chat, and again after a reload: it is as it was, and learned.
      const chats = page.getByRole('navigation', { name: 'Chats' })
      await chats.getByRole('button', { name: /^I live in Lisbon/ }).click()
      await page.getByRole('heading', { name: 'I live in Lisbon.' }).waitFor()
      await page.reload()
      await page.getByRole('heading', { name: 'I live in Lisbon.' }).waitFor()
      await page.locator('#memory-state', { hasText: 'learned' }).waitFor()

      await memory.getByRole('button', { name: 'Forget: I live in Lisbon' }).click()
      await memory.getByText('Nothing yet').waitFor()
    })

    test('B2: a new chat is there at once while the provider takes a minute', async () => {
      const script = 'tests/gateway/support/slow-gateway.ts'
      const env = { COMMIT_MS: '60000', SHUTDOWN_DEADLINE_MS: '200' }
      const { url } = await startGateway({ directory: await temporaryDirectory(), script, env })
      const page = await open(url)
      await say(page, 'I live in Lisbon.')
      await page.getByRole('button', { name: 'New chat' }).first().click()
      await say(page, 'count to 3')
      expect(await answers(page).allTextContents()).toEqual(['1 2 3'])
      await page
        .getByRole('navigation', { name: 'Chats' })
        .getByRole('button', { name: /^I live/ })
        .click()
      await page.getByText('1 turn to learn').waitFor()
    })

    test('Y1: kill -9 in the middle of an answer; the page finds the gateway again and shows what is left of it', async () => {
      const directory = await temporaryDirectory()
      const gateway = await startGateway({ directory })
      const page = await open(gateway.url)
      await question(page).fill('Compute 17 * 23 and count slowly to 60')
      await question(page).press('Enter')
      await page.locator('.message.streaming', { hasText: '391. 1 2 3' }).waitFor()
      await gateway.kill('SIGKILL')
      await page.getByRole('alert').getByText('The connection to the gateway is lost').waitFor()
      await startGateway({ directory, port: Number(new URL(gateway.url).port) })

      const check = async (): Promise<void> => {
        await page.getByText('Interrupted: this answer is partial').waitFor()
        await page.getByText('This answer was interrupted. What was received before is above.').waitFor()
        expect(await page.locator('.card', { hasText: 'calculator' }).count()).toBe(1)
        expect((await answers(page).allTextContents()).join('')).toContain('17 * 23 = 391. 1 2 3')
        expect(await page.getByRole('alert').isVisible()).toBe(false)
      }
      await check()
      await page.reload()
      await check()
      await say(page, 'count to 3')
      expect(await answers(page).last().textContent()).toBe('1 2 3')
    })

    test('a new chat that failed while the gateway was away is made when it is back', async () => {
      const directory = await temporaryDirectory()
      const gateway = await startGateway({ directory })
      const page = await open(gateway.url)
      await say(page, 'I live in Lisbon.')
      await gateway.kill('SIGTERM')
      await page.getByRole('button', { name: 'New chat' }).first().click()
      await page.getByRole('alert').getByText('The gateway cannot be reached.').waitFor()
      await startGateway({ directory, port: Number(new URL(gateway.url).port) })
      await say(page, 'Where do I live?')
      expect(await answers(page).allTextContents()).toEqual(['You told me: “I live in Lisbon” (from memory).'])
      expect(await page.getByRole('alert').isVisible()).toBe(false)
    })

    test('whoever goes to another chat before the gateway has answered: the words stay in the chat in which they were said', async () => {
      const { url } = await startGateway({ directory: await temporaryDirectory() })
      const page = await open(url)
      const chats = page.getByRole('navigation', { name: 'Chats' })
      await say(page, 'count to 2')
      await page.getByRole('button', { name: 'New chat' }).first().click()
      await say(page, 'count to 3')
      const held: Route[] = []
      await page.route('**/turns', (route) => void held.push(route))
      await question(page).fill('count to 4')
      await question(page).press('Enter')
      await expect.poll(() => held.length).toBe(1)
      await chats.getByRole('button', { name: /^count to 2/ }).click()
      await page.getByRole('heading', { name: 'count to 2' }).waitFor()
      // The list of chats is asked for when everything else has been done.
      const listed = page.waitForResponse('**/api/sessions')
      await held[0]?.continue()
      await listed
      expect(await page.locator('.message.user .said').allTextContents()).toEqual(['count to 2'])
      await chats.getByRole('button', { name: /^count to 3/ }).click()
      await answers(page).getByText('1 2 3 4').waitFor()
      expect(await answers(page).allTextContents()).toEqual(['1 2 3', '1 2 3 4'])
    })

    test('the chat that was clicked last is shown, whichever comes first', async () => {
      const { url } = await startGateway({ directory: await temporaryDirectory() })
      const page = await open(url)
      const chats = page.getByRole('navigation', { name: 'Chats' })
      await say(page, 'count to 2')
      const slow = new URL(page.url()).hash.slice(1)
      await page.getByRole('button', { name: 'New chat' }).first().click()
      await say(page, 'count to 3')
      const held: Route[] = []
      await page.route(`**/api/sessions/${slow}`, (route) => void held.push(route))
      await chats.getByRole('button', { name: /^count to 2/ }).click()
      await expect.poll(() => held.length).toBe(1)
      await page.getByRole('button', { name: 'New chat' }).first().click()
      await page.getByRole('heading', { name: 'No finished turn is ever forgotten' }).waitFor()
      const answered = page.waitForResponse(`**/api/sessions/${slow}`)
      await held[0]?.continue()
      await answered
      await say(page, 'count to 5')
      expect(await answers(page).allTextContents()).toEqual(['1 2 3 4 5'])
    })

    test('two tabs on one chat: an answer that runs in one is refused and then followed in the other', async () => {
      const { url } = await startGateway({ directory: await temporaryDirectory() })
      const page = await open(url)
      await say(page, 'count to 2')
      const other = await page.context().newPage()
      await other.goto(page.url())
      await answers(other).getByText('1 2').waitFor()
      await question(page).fill('count slowly to 60')
      await question(page).press('Enter')
      await page.locator('.message.streaming', { hasText: '1 2 3' }).waitFor()
      await question(other).fill('count to 4')
      await question(other).press('Enter')
      await other.locator('.message.streaming', { hasText: '1 2 3' }).waitFor()
      expect(await question(other).inputValue()).toBe('count to 4')
      await page.keyboard.press('Escape')
      await other.getByText('Cancelled: this answer is partial').waitFor()
      await question(other).press('Enter')
      await answers(other).getByText('1 2 3 4', { exact: true }).waitFor()
    })

    test('works with the keyboard only: ask, cancel, undo, new chat, choose a chat', async () => {
      const { url } = await startGateway({ directory: await temporaryDirectory() })
      const page = await open(url)
      const focused = page.locator(':focus')
      const tabTo = async (name: RegExp, key: 'Tab' | 'Shift+Tab'): Promise<void> => {
        for (let presses = 0; presses < 30; presses++) {
          await page.keyboard.press(key)
          if (name.test((await focused.textContent()) ?? '') || name.test((await focused.getAttribute('id')) ?? ''))
            return
        }
        throw new Error(`${key} never reached ${String(name)}`)
      }
      // The question has the focus from the start, and Shift+Enter starts a line.
      await page.keyboard.type('Tell me')
      await page.keyboard.press('Shift+Enter')
      await page.keyboard.type('a story slowly')
      await page.keyboard.press('Enter')
      await page.locator('.message.streaming', { hasText: 'At low' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByText('Cancelled: this answer is partial').waitFor()
      await tabTo(/^Undo$/, 'Shift+Tab')
      await page.keyboard.press('Enter')
      await page.locator('.message').first().waitFor({ state: 'detached' })
      expect(await question(page).inputValue()).toBe('Tell me\na story slowly')
      expect(await focused.getAttribute('id')).toBe('question')
      await question(page).fill('count to 2')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Undo' }).waitFor()
      await tabTo(/^new-chat$/, 'Shift+Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'No finished turn is ever forgotten' }).waitFor()
      expect(await focused.getAttribute('id')).toBe('question')
      await tabTo(/^count to 2/, 'Shift+Tab')
      await page.keyboard.press('Enter')
      await answers(page).getByText('1 2').waitFor()
    })

    test.each([
      ['light', 'rgb(243, 246, 245)'],
      ['dark', 'rgb(13, 20, 20)'],
    ] as const)('%s: fits a phone, and the drawers open and close', async (colorScheme, ground) => {
      const { url } = await startGateway({ directory: await temporaryDirectory() })
      const page = await open(url, { viewport: PHONE, colorScheme, hasTouch: true, isMobile: true })
      expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(ground)
      await say(page, `I live in Lisbon. ${'https://example.org/a-very-long-address/'.repeat(5)}`)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      const chats = page.getByRole('navigation', { name: 'Chats' })
      expect(await chats.isVisible()).toBe(false)
      await page.getByRole('button', { name: 'Chats' }).tap()
      await chats.waitFor()
      expect(await page.getByRole('button', { name: 'Chats' }).getAttribute('aria-expanded')).toBe('true')
      await page.keyboard.press('Escape')
      await chats.waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: 'Memory' }).tap()
      await page.getByRole('complementary', { name: 'Memory' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('complementary', { name: 'Memory' }).waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: 'Chats' }).tap()
      await chats.getByRole('button', { name: 'New chat' }).tap()
      await page.getByRole('heading', { name: 'No finished turn is ever forgotten' }).waitFor()
      await chats.waitFor({ state: 'hidden' })
    })
  },
)
