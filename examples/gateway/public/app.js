import { api } from './api.js'
import { $, announce, clearProblem, element, refill, showProblem } from './dom.js'
import { closeDrawers, setUpDrawers } from './drawers.js'
import { refreshFacts, showMemoryState } from './memory-panel.js'
import { followMemory, followRun } from './streams.js'
import { LiveAnswer, renderTranscript, userItem } from './transcript.js'

const SUGGESTIONS = [
  'I live in Lisbon and my dog is called Rex.',
  'What is 17 * 23?',
  'Tell me a story slowly.',
  'What do you know about me?',
]

/** The chat on the screen; without an id it does not exist yet. */
let chat = emptyChat()
let run
/** Grows with every change of chat: what was asked for before and comes late does not take the screen back. */
let changes = 0

/** `previousId`: the chat that was left for this one, so that the gateway learns of the boundary. */
function emptyChat(previousId) {
  const nothing = { title: '', messages: [], toolCalls: [], activeRunId: null, pendingUserMessage: null }
  return { id: undefined, previousId, ...nothing }
}

// ---- showing

async function showChats() {
  const chats = await api.chats()
  refill(
    $('chats'),
    ...chats.map(({ id, title, updatedAt }) => {
      const button = element(
        'button',
        { type: 'button', dataset: { key: id }, onclick: () => openChat(id).catch(showProblem) },
        element('span', { className: 'name', textContent: title || 'New chat' }),
        element('span', { className: 'when', textContent: whenOf(updatedAt) }),
      )
      if (id === chat.id) button.setAttribute('aria-current', 'true')
      return element('li', {}, button)
    }),
  )
}

function showChat({ keepPlace = false } = {}) {
  const isEmpty = chat.messages.length === 0 && chat.pendingUserMessage === null
  $('title').textContent = chat.title || 'New chat'
  $('welcome').hidden = !isEmpty
  renderTranscript(chat, { onUndo: () => undo().catch(showProblem), onRetry: () => retry().catch(showProblem) })
  showMemoryState(chat.memory)
  if (!keepPlace) scrollToEnd(true)
}

function showRunning(isRunning) {
  $('send').hidden = isRunning
  $('cancel').hidden = !isRunning
}

function scrollToEnd(always = false) {
  const { scrollHeight, scrollTop, clientHeight } = $('scroller')
  if (always || scrollHeight - scrollTop - clientHeight < 120) $('scroller').scrollTop = scrollHeight
}

function whenOf(time) {
  const date = new Date(time)
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday
    ? date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
    : date.toLocaleDateString([], { day: 'numeric', month: 'short' })
}

// ---- doing

async function openChat(id) {
  clearProblem()
  closeDrawers()
  const change = ++changes
  const opened = await api.chat(id)
  if (change !== changes) return
  leaveRun()
  chat = opened
  history.replaceState(null, '', `#${id}`)
  showChat()
  await showChats()
  followActive()
}

/** The screen changes at once; the gateway learns of the boundary and nobody waits for memory. */
async function newChat() {
  clearProblem()
  closeDrawers()
  if (chat.messages.length > 0 || chat.activeRunId !== null) {
    changes++
    leaveRun()
    chat = emptyChat(chat.id)
    showChat()
  }
  $('question').focus()
  if (chat.id !== undefined) return
  await createChat(chat)
  await showChats()
}

/** Once for each chat, also when somebody sends before the answer to "New chat" is here; again only if it failed. */
function createChat(created) {
  created.creating ??= api.newChat(created.previousId).then(
    ({ id }) => {
      created.id = id
      if (chat === created) history.replaceState(null, '', `#${id}`)
    },
    (error) => {
      created.creating = undefined
      throw error
    },
  )
  return created.creating
}

async function ask(text) {
  clearProblem()
  const asked = chat
  if (asked.id === undefined) await createChat(asked)
  const { id } = asked
  const { runId } = await api.ask(id, text)
  // Somebody may have gone to another chat meanwhile. The answer is found here later.
  if (chat.id === id && run?.runId !== runId) {
    $('welcome').hidden = true
    $('transcript').querySelector('.actions')?.remove()
    if (chat.pendingUserMessage === null) $('transcript').append(userItem(text))
    Object.assign(chat, { activeRunId: runId, pendingUserMessage: text, title: chat.title || text })
    $('title').textContent = chat.title
    follow(id, runId)
  }
  await showChats()
}

async function undo() {
  clearProblem()
  const { id } = chat
  const { text, offered } = await api.undo(id)
  await refreshChat()
  if (chat.id === id) {
    $('question').value = text
    fitQuestion()
    $('question').focus()
    announce(offered > 0 ? 'Undone here. Memory had already learned from it.' : 'Undone, also in memory.')
  }
  await showChats()
}

async function retry() {
  clearProblem()
  await api.retry(chat.id)
  await catchUp()
  $('question').focus()
}

async function refreshChat() {
  const { id } = chat
  if (id === undefined) return
  const fresh = await api.chat(id)
  // Somebody may have gone to another chat meanwhile.
  if (chat.id !== id) return
  const isSame = JSON.stringify({ ...fresh, memory: 0 }) === JSON.stringify({ ...chat, memory: 0 })
  chat = fresh
  // Cards that were opened stay open, and a reader is not disturbed.
  if (isSame) showMemoryState(chat.memory)
  else showChat({ keepPlace: true })
}

/** Also for what another tab has begun in this chat. */
async function catchUp() {
  await refreshChat()
  followActive()
}

function followActive() {
  if (run === undefined && chat.activeRunId !== null) follow(chat.id, chat.activeRunId)
}

function follow(chatId, runId) {
  leaveRun()
  const answer = new LiveAnswer()
  showRunning(true)
  scrollToEnd(true)
  const stop = followRun(chatId, runId, {
    onEvent(name, payload) {
      if (name === 'token') answer.addText(payload.text)
      else if (name === 'tool') answer.addTool(payload)
      else if (name === 'tool_complete') answer.completeTool(payload)
      scrollToEnd()
    },
    onBreak(isBroken) {
      if (isBroken) showProblem(new Error('The connection to the gateway is lost. Trying again…'))
      else clearProblem()
    },
    onEnd() {
      if (run?.runId !== runId) return
      leaveRun()
      refreshChat().then(scrollToEnd).then(showChats).catch(showProblem)
      announce(answer.text)
    },
  })
  run = { chatId, runId, stop }
}

function leaveRun() {
  run?.stop()
  run = undefined
  showRunning(false)
}

function cancelRun() {
  if (run !== undefined) api.cancel(run.chatId, run.runId).catch(showProblem)
}

function fitQuestion() {
  const question = $('question')
  question.style.height = 'auto'
  question.style.height = `${question.scrollHeight}px`
}

// ---- wiring

$('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  const text = $('question').value.trim()
  if (text === '' || run !== undefined) return
  $('question').value = ''
  fitQuestion()
  ask(text).catch((error) => {
    // Nothing that was typed is lost.
    $('question').value ||= text
    fitQuestion()
    showProblem(error)
    if (error.code === 'BUSY') catchUp().catch(showProblem)
  })
})
$('question').addEventListener('input', fitQuestion)
$('question').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  $('composer').requestSubmit()
})
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !closeDrawers()) cancelRun()
})
$('cancel').addEventListener('click', () => {
  cancelRun()
  $('question').focus()
})
$('new-chat').addEventListener('click', () => newChat().catch(showProblem))
$('suggestions').append(
  ...SUGGESTIONS.map((text) =>
    element(
      'li',
      {},
      element('button', { type: 'button', textContent: text, onclick: () => ask(text).catch(showProblem) }),
    ),
  ),
)
setUpDrawers()

async function onMemoryChange({ name, sessionId }) {
  // `connected` and `missed`: anything may have happened.
  const isAnything = sessionId === undefined
  if (name === 'commit:succeeded' || name === 'receipt:settled' || isAnything) await refreshFacts()
  if (run === undefined && (sessionId === chat.id || isAnything)) await catchUp()
}

async function begin() {
  const { model, memory } = await api.health()
  $('about').replaceChildren(`Model: ${model}`, element('br'), `Memory: ${memory}`)
  const wanted = location.hash.slice(1)
  const chats = await api.chats()
  const first = chats.find(({ id }) => id === wanted) ?? chats[0]
  if (first === undefined) showChat()
  else await openChat(first.id)
  followMemory((event) => void onMemoryChange(event).catch(showProblem))
  $('question').focus()
}

begin().catch(showProblem)
