import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RunJournal } from '../../src/journal/index.js'
import { SessionStore, type Message } from '../../src/sessions/index.js'
import { manualTime, type ManualTime } from '../support/manual-time.js'
import { temporaryDirectory } from '../support/temporary.js'
import { assistant, user } from './support.js'

/**
 * The trivial model: what is in memory, what the last save put on disk, and the turn that runs. A crash forgets what
 * is in memory; a turn that ran then ends with its journaled text and a marker at the next read.
 */
interface Model {
  id: string
  memory: string[]
  disk: string[] | undefined
  run: { id: string; text: string; output: string } | undefined
  runOnDisk: boolean
  rotations: number
}

interface Real {
  store: SessionStore
  journal: RunJournal
  readonly clock: ManualTime
  readonly open: () => Promise<void>
}

const shape = (messages: readonly Message[]) =>
  messages.map(({ role, content, interruption }) => (interruption === undefined ? `${role}: ${content}` : 'marker'))

abstract class Step implements fc.AsyncCommand<Model, Real> {
  check(_model: Readonly<Model>): boolean {
    return true
  }
  abstract apply(model: Model, real: Real): Promise<void>
  async run(model: Model, real: Real): Promise<void> {
    await this.apply(model, real)
    const session = await real.store.get(model.id)
    expect(shape(session?.messages ?? [])).toEqual(model.memory)
    expect(session?.activeRunId ?? undefined).toBe(model.run?.id)
  }
  toString(): string {
    return this.constructor.name
  }
}

const saved = (model: Model): void => {
  model.disk = [...model.memory]
  model.runOnDisk = model.run !== undefined
}

class Append extends Step {
  constructor(readonly message: Message) {
    super()
  }
  async apply(model: Model, { store }: Real) {
    const session = await store.getOrCreate(model.id)
    session.messages.push({ ...this.message })
    model.memory.push(`${this.message.role}: ${this.message.content}`)
  }
  override toString() {
    return `Append(${this.message.role})`
  }
}

class Save extends Step {
  constructor(readonly fsync: boolean) {
    super()
  }
  async apply(model: Model, { store }: Real) {
    await store.save(await store.getOrCreate(model.id), { fsync: this.fsync })
    saved(model)
  }
}

class Edit extends Step {
  constructor(readonly at: number) {
    super()
  }
  override check(model: Readonly<Model>) {
    return model.memory.some((line) => line !== 'marker')
  }
  async apply(model: Model, { store }: Real) {
    const plain = model.memory.flatMap((line, at) => (line === 'marker' ? [] : [at]))
    const index = plain[this.at % plain.length]!
    await store.update(model.id, ({ messages }) => {
      messages[index]!.content = 'edited'
    })
    model.memory[index] = model.memory[index]!.replace(/: .*$/s, ': edited')
    saved(model)
  }
}

class Undo extends Step {
  override check(model: Readonly<Model>) {
    return model.memory.some((line) => line.startsWith('user'))
  }
  async apply(model: Model, { store }: Real) {
    await store.undoLast(model.id)
    model.memory.length = model.memory.findLastIndex((line) => line.startsWith('user'))
    saved(model)
  }
}

class Retry extends Undo {
  override async apply(model: Model, { store }: Real) {
    const at = model.memory.findLastIndex((line) => line.startsWith('user'))
    expect(`user: ${(await store.retryLast(model.id)).text}`).toBe(model.memory[at])
    model.memory.length = at
    saved(model)
  }
}

class Begin extends Step {
  constructor(readonly text: string) {
    super()
  }
  override check(model: Readonly<Model>) {
    return model.run === undefined
  }
  async apply(model: Model, { store, clock }: Real) {
    clock.advance(1)
    await store.getOrCreate(model.id)
    const { runId } = await store.beginTurn(model.id, { text: this.text })
    model.run = { id: runId, text: this.text, output: '' }
    saved(model)
  }
}

abstract class Running extends Step {
  override check(model: Readonly<Model>) {
    return model.run !== undefined
  }
}

class Token extends Running {
  async apply(model: Model, { journal }: Real) {
    await journal.append(model.id, model.run!.id, 'token', { text: 'tok ' })
    model.run!.output += 'tok '
  }
}

class Checkpoint extends Running {
  async apply(model: Model, { store, clock }: Real) {
    const session = (await store.get(model.id))!
    const checkpoint = store.checkpoint(model.id, { everyMs: 1 })
    checkpoint.activity()
    clock.advance(1)
    while (session.updatedAt !== clock.now()) await new Promise((resolve) => setImmediate(resolve))
    await checkpoint.stop()
    saved(model)
  }
}

class End extends Running {
  async apply(model: Model, { store }: Real) {
    await store.endTurn(model.id, model.run!.id, [assistant('whole answer')])
    model.memory.push(`user: ${model.run!.text}`, 'assistant: whole answer')
    model.run = undefined
    saved(model)
  }
}

class Cancel extends Running {
  async apply(model: Model, { store }: Real) {
    await store.cancelRun(model.id, model.run!.id)
    model.memory.push(`user: ${model.run!.text}`)
    if (model.run!.output !== '') model.memory.push(`assistant: ${model.run!.output}`)
    model.run = undefined
    saved(model)
  }
}

class Rotate extends Step {
  async apply(model: Model, { store }: Real) {
    await store.getOrCreate(model.id)
    const before = model.memory
    model.rotations += 1
    const newId = `s${model.rotations}`
    await store.rotate(model.id, newId)
    expect(shape((await store.get(model.id))!.messages)).toEqual(before)
    model.id = newId
    saved(model)
  }
}

class Flush extends Step {
  async apply(model: Model, { store }: Real) {
    await store.getOrCreate(model.id)
    expect((await store.flushAll()).failed).toEqual([])
    saved(model)
  }
}

class Crash extends Step {
  async apply(model: Model, real: Real) {
    await real.store.close()
    await real.journal.close()
    real.clock.advance(60_000)
    await real.open()
    model.memory = [...(model.disk ?? [])]
    if (model.run !== undefined && model.runOnDisk) {
      model.memory = [...model.memory, `user: ${model.run.text}`]
      if (model.run.output !== '') model.memory.push(`assistant: ${model.run.output}`)
      model.memory.push('marker')
      model.disk = [...model.memory]
    }
    model.run = undefined
    model.runOnDisk = false
  }
}

test('S2: any sequence of appends, saves, turns, undos, rotations, checkpoints and crashes equals a trivial model', async () => {
  // The user's words that a host puts into a running turn itself count as that turn's (T4), so notes are others.
  const texts = fc.constantFrom('continue', 'hello', 'größe\u2028x')
  const commands = [
    fc
      .tuple(fc.boolean(), texts)
      .map(([asked, text]) => new Append(asked ? user(`note ${text}`) : assistant(`note ${text}`))),
    fc.boolean().map((fsync) => new Save(fsync)),
    fc.nat(20).map((at) => new Edit(at)),
    fc.constant(new Undo()),
    fc.constant(new Retry()),
    texts.map((text) => new Begin(text)),
    fc.constant(new Token()),
    fc.constant(new Checkpoint()),
    fc.constant(new End()),
    fc.constant(new Cancel()),
    fc.constant(new Rotate()),
    fc.constant(new Flush()),
    fc.constant(new Crash()),
    fc.constant(new Crash()),
  ]
  const numRuns = Number(process.env['TIDEMARK_MODEL_RUNS'] ?? 60)
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 40 }), async (sequence) => {
      const directory = await temporaryDirectory()
      const clock = manualTime()
      const real = { clock } as Real
      Object.assign(real, {
        open: async () => {
          real.journal = await RunJournal.open({ directory: `${directory}/journal`, clock })
          real.store = await SessionStore.open({ directory: `${directory}/store`, clock, journal: real.journal })
        },
      })
      await real.open()
      const model: Model = { id: 's0', memory: [], disk: undefined, run: undefined, runOnDisk: false, rotations: 0 }
      try {
        await fc.asyncModelRun(() => ({ model, real }), sequence)
      } finally {
        await real.store.close()
        await real.journal.close()
      }
    }),
    { numRuns },
  )
})
