import type { SqlDatabase, SqlRow } from '../../base/sqlite.js'
import { recordTurn } from '../../core/index.js'
import { Chains } from './chains.js'
import { fileDamaged } from './failure.js'
import { isSound, LINK_COLUMNS, readLink } from './outbox-row.js'
import { SessionReader } from './session-reader.js'
import { encodeMark, hashConstants, type SessionRecord, UPDATE_MARK } from './session-row.js'
import { NOTE_WRITTEN, readWrittenThrough } from './written-through.js'

/**
 * Writes the rows of sessions that were behind when the process ended (see `write-behind.ts`): every row of the outbox
 * that its session does not know of is one more turn of that session's tail. Runs inside a transaction.
 */
export function catchUp(db: SqlDatabase): void {
  const reader = new SessionReader(db, new Chains(db))
  const findGeneration = db.prepare('SELECT generation FROM sessions WHERE id = ?')
  const rows = db.prepare(`SELECT ${LINK_COLUMNS.join(', ')} FROM outbox WHERE id > ? ORDER BY id`)
  const behind = new Map<number, SessionRecord | 'damaged'>()
  let through = readWrittenThrough(db)

  for (const row of rows.iterate(through)) {
    const { id, session, generation } = readLink(row)
    through = id
    let record = behind.get(session)
    if (record === undefined) {
      // Not verified: if this number is wrong, the session stays as damaged as it is.
      const known = findGeneration.get(session)?.['generation']
      if (isSound(row) && typeof known === 'number' && generation <= known) continue
      record = load(reader, session)
    }
    behind.set(session, record === 'damaged' ? record : grow(record, row))
  }

  const update = db.prepare(UPDATE_MARK)
  for (const record of behind.values()) {
    if (record === 'damaged') continue
    const { sessionId, id, state, tailHead } = record
    update.run(...encodeMark(id, hashConstants(sessionId, id, state), state, tailHead))
  }
  db.prepare(NOTE_WRITTEN).run(through)
}

function load(reader: SessionReader, session: number): SessionRecord | 'damaged' {
  const loaded = reader.readNumbered(session)
  if (loaded === undefined) throw fileDamaged('a row of the outbox belongs to no session')
  return 'record' in loaded ? loaded.record : 'damaged'
}

/**
 * The row must follow the newest one that its session knows. If it does and is damaged, it becomes a part of the session
 * all the same, so that whoever reads that session is refused; if it does not, nobody knows whose turn was lost.
 */
function grow(record: SessionRecord, row: SqlRow): SessionRecord {
  const { id, previous, generation } = readLink(row)
  const { state, tailHead } = record
  const { tail } = state
  const isWhole = isSound(row)
  const follows = previous === tailHead && (!isWhole || generation === state.generation + 1)
  if (tail === undefined || previous === 0 || !follows)
    throw fileDamaged('a row of the outbox does not fit its session')
  const at = isWhole ? (row['completed_at'] as number) : tail.since
  const turn = { owner: tail.owner, at, turnId: undefined, messages: undefined }
  return { ...record, state: recordTurn(state, turn).state, tailHead: id }
}
