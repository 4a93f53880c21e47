import { describe, expect, it } from 'vitest'
import { commitOf, contents, openFile, openMemory, temporaryPath, turn, user, withDatabase } from './helpers.js'

const tea = [turn(1, user('I like tea. What now?')), turn(2, user('We decided to wait'))]

describe('an agent', () => {
  it('C10, C11: stores the statements of the turns and answers committed', async () => {
    const memory = await openMemory()
    const agent = memory.agent('s')
    expect(agent).toMatchObject({ agentId: 'holographic:s', provider: 'holographic' })
    expect(await agent.commitMemorySession(commitOf('k1', tea))).toEqual({ status: 'committed' })
    expect((await memory.list()).map((fact) => [fact.content, fact.category])).toEqual([
      ['We decided to wait', 'project'],
      ['I like tea', 'user_pref'],
    ])
  })

  it('C11: answers nothing for a segment without statements', async () => {
    const memory = await openMemory()
    const commit = commitOf('k1', [turn(1, user('hello'))])
    expect(await memory.agent('s').commitMemorySession(commit)).toEqual({ status: 'nothing' })
    expect(await memory.agent('s').commitMemorySession(commit)).toEqual({ status: 'nothing' })
  })

  it('R4, better 6: the same key again extracts nothing and stores nothing, also after a restart', async () => {
    const path = temporaryPath()
    let calls = 0
    const extract = () => [`fact ${++calls}`]
    const first = await openFile(path, { dimensions: 64, extract })
    await first.agent('s').commitMemorySession(commitOf('k1', tea))
    await first.close()
    const second = await openFile(path, { extract })
    expect(await second.agent('s').commitMemorySession(commitOf('k1', tea))).toEqual({ status: 'committed' })
    expect(calls).toBe(1)
    await second.agent('s').commitMemorySession(commitOf('k2', tea))
    expect(contents(await second.list()).sort()).toEqual(['fact 1', 'fact 2'])
  })

  it('better 6: of two attempts at one segment that run at once, one stores', async () => {
    const path = temporaryPath()
    let release = (): void => undefined
    const waiting = new Promise<void>((resolve) => (release = resolve))
    const slow = await openFile(path, {
      dimensions: 64,
      extract: async () => {
        await waiting
        return ['from the slow one']
      },
    })
    const quick = await openFile(path, { extract: () => ['from the quick one'] })
    const late = slow.agent('s').commitMemorySession(commitOf('k1', tea))
    await quick.agent('s').commitMemorySession(commitOf('k1', tea))
    release()
    expect(await late).toEqual({ status: 'committed' })
    expect(contents(await quick.list())).toEqual(['from the quick one'])
  })

  it('better 6: a segment that fails half-way stores nothing, neither facts nor key', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64, extract: () => ['good', 'bad'] })
    await withDatabase(path, (db) =>
      db.exec(
        "CREATE TRIGGER no_bad BEFORE INSERT ON facts WHEN new.content = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
      ),
    )
    await expect(memory.agent('s').commitMemorySession(commitOf('k1', tea))).rejects.toThrow('no')
    expect(await memory.list()).toEqual([])
    await withDatabase(path, (db) => db.exec('DROP TRIGGER no_bad'))
    expect(await memory.agent('s').commitMemorySession(commitOf('k1', tea))).toEqual({ status: 'committed' })
    expect(contents(await memory.list()).sort()).toEqual(['bad', 'good'])
  })

  it('C13: an aborted attempt stores nothing', async () => {
    const controller = new AbortController()
    const memory = await openMemory({
      extract: (_, { signal }) => {
        expect(signal).toBe(controller.signal)
        controller.abort()
        return ['late']
      },
    })
    const commit = commitOf('k1', tea, controller.signal)
    await expect(memory.agent('s').commitMemorySession(commit)).rejects.toMatchObject({ code: 'ABORTED' })
    expect(await memory.list()).toEqual([])
  })

  it('better 3: extract replaces the rules; strings and objects are facts; a secret is dropped', async () => {
    const memory = await openMemory({
      extract: async (turns, { sessionId }) => [
        `${sessionId} has ${turns.length} turns`,
        { content: 'Alice likes tea', category: 'tool', tags: ['x'] },
        'my password is hunter2',
      ],
    })
    await memory.agent('s').commitMemorySession(commitOf('k1', tea))
    expect((await memory.list()).map(({ content, category, tags }) => [content, category, tags])).toEqual([
      ['Alice likes tea', 'tool', ['x']],
      ['s has 2 turns', 'general', []],
    ])
  })

  it.each([[undefined], ['text'], [7], [{}], [[{}]], [[{ content: '' }]], [[{ content: 'x', category: 7 }]], [[null]]])(
    'an extractor that gives %j has failed: PROVIDER_FAILED, and nothing is stored',
    async (given) => {
      const memory = await openMemory({ extract: () => given as string[] })
      await expect(memory.agent('s').commitMemorySession(commitOf('k1', tea))).rejects.toMatchObject({
        code: 'PROVIDER_FAILED',
      })
      expect(await memory.list()).toEqual([])
    },
  )

  it('a segment of any length is read in pieces', async () => {
    const sizes: number[] = []
    const memory = await openMemory({
      extract: (turns) => {
        sizes.push(turns.length)
        return []
      },
    })
    const turns = Array.from({ length: 250 }, (_, i) => turn(i + 1, user('x')))
    await memory.agent('s').commitMemorySession(commitOf('k1', turns))
    expect(sizes).toEqual([100, 100, 50])
  })

  it('a commit without a key is a TypeError', async () => {
    const memory = await openMemory()
    await expect(memory.agent('s').commitMemorySession(commitOf('', tea))).rejects.toBeInstanceOf(TypeError)
    expect(() => memory.agent(undefined as unknown as string)).toThrow(TypeError)
  })

  it('better 8: reads go on while an extraction runs', async () => {
    let release = (): void => undefined
    const waiting = new Promise<void>((resolve) => (release = resolve))
    const memory = await openMemory({
      extract: async () => {
        await waiting
        return ['late fact']
      },
    })
    await memory.add('early fact')
    const commit = memory.agent('s').commitMemorySession(commitOf('k1', tea))
    expect(contents(await memory.search('fact'))).toEqual(['early fact'])
    await memory.add('middle fact')
    release()
    await commit
    expect(await memory.search('fact')).toHaveLength(3)
  })
})

describe('a deleted fact', () => {
  it('better 4: is not extracted again, in whatever case, spacing or punctuation', async () => {
    const memory = await openMemory({ extract: (turns) => turns.flatMap(({ messages }) => messages as string[]) })
    const agent = memory.agent('s')
    await agent.commitMemorySession(commitOf('k1', [turn(1, 'I like tea')]))
    await memory.remove((await memory.list())[0]!.id)
    await agent.commitMemorySession(
      commitOf('k2', [turn(2, 'I like tea', 'i LIKE  tea.', '“I like tea!”', 'I like teapots')]),
    )
    expect(contents(await memory.list())).toEqual(['I like teapots'])
  })

  it('better 4: stays deleted after a restart, and its text is kept nowhere', async () => {
    const path = temporaryPath()
    const extract = () => ['the quokka sleeps']
    const first = await openFile(path, { dimensions: 64, extract })
    await first.remove((await first.add('the quokka sleeps')).id)
    await first.close()
    const second = await openFile(path, { extract })
    expect(await second.agent('s').commitMemorySession(commitOf('k1', tea))).toEqual({ status: 'nothing' })
    expect(await second.list()).toEqual([])
    const kept = await withDatabase(path, (db) => JSON.stringify(db.prepare('SELECT * FROM tidemark_deleted').all()))
    expect(kept).not.toContain('quokka')
  })

  it('better 4: what a correction replaced is not learned again either', async () => {
    const memory = await openMemory({ extract: () => ['I live in Bonn'] })
    const { id } = await memory.add('I live in Bonn')
    await memory.update(id, { content: 'I live in Köln' })
    await memory.agent('s').commitMemorySession(commitOf('k1', tea))
    expect(contents(await memory.list())).toEqual(['I live in Köln'])
  })

  it('comes back only if somebody adds it on purpose', async () => {
    const memory = await openMemory({ extract: () => ['I like tea'] })
    await memory.remove((await memory.add('I like tea')).id)
    expect(await memory.add('I like tea')).toMatchObject({ added: true })
    expect(contents(await memory.list())).toEqual(['I like tea'])
  })
})

describe('closing', () => {
  it('is idempotent, and everything afterwards is refused with CLOSED', async () => {
    const memory = await openMemory()
    const agent = memory.agent('s')
    await memory.close()
    await memory.close()
    for (const call of [
      memory.add('x'),
      memory.search('x'),
      memory.list(),
      memory.contradict(),
      memory.recall('x'),
      memory.remove(1),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'CLOSED' })
    }
    await expect(agent.commitMemorySession(commitOf('k', tea))).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(memory.handleToolCall('fact_store', { action: 'list' })).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
