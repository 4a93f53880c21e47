import { rm } from 'node:fs/promises'
import { TidemarkError } from '../base/errors.js'
import { fileExists } from '../log/files.js'
import type { Loaded, LoadedSessions } from './loaded-sessions.js'
import { hasPendingTurn } from './recovery.js'
import { clearPending } from './transcript.js'
import type { Session } from './types.js'

const DURABLE = Object.freeze({ durable: true, truncate: true })

/**
 * Gives a session a new id. The live object goes on under the new one; the old file stays as a snapshot without a
 * running turn. In three durable steps, so that a crash leaves the running turn with exactly one of them:
 * the old file says where it is going; the new file is there; the old file's bookkeeping is cleared. A load that finds
 * the first step done looks whether the second was (`finishRotation`).
 */
export async function rotateSession(sessions: LoadedSessions, loaded: Loaded, newId: string): Promise<Loaded> {
  const { session, file } = loaded
  const oldId = session.id
  const { rotatedFrom } = session
  await refuseExisting(sessions, oldId, newId)
  session.rotatedTo = newId
  const newFile = sessions.fileOf(newId)
  newFile.finishedRuns = []
  try {
    await file.save(session, DURABLE)
    Object.assign(session, { id: newId, rotatedFrom: oldId, rotatedTo: null })
    const moved: Loaded = { session, file: newFile }
    // From this moment until the end nobody may read the old file: it is still being written.
    const finished = finishOldFile(loaded, moved, oldId)
    sessions.forget(oldId)
    sessions.put(moved)
    sessions.gate(oldId, finished)
    await finished
    return moved
  } catch (error) {
    sessions.forget(newId)
    await rm(sessions.pathOf(newId), { force: true })
    Object.assign(session, { id: oldId, rotatedFrom, rotatedTo: null })
    sessions.put(loaded)
    throw error
  }
}

async function finishOldFile({ session, file }: Loaded, moved: Loaded, oldId: string): Promise<void> {
  // Taken before the first await, so that it is the state that the new file starts from.
  const snapshot: Session = { ...session, id: oldId, rotatedFrom: session.rotatedFrom, rotatedTo: moved.session.id }
  snapshot.messages = [...session.messages]
  snapshot.toolCalls = [...session.toolCalls]
  await moved.file.save(session, DURABLE)
  clearPending(snapshot)
  snapshot.recoveries = []
  await file.save(snapshot, DURABLE)
  await file.close()
}

/** After a load: a rotation that a crash cut short is completed, or forgotten if the new file never came. */
export async function finishRotation(sessions: LoadedSessions, session: Session): Promise<boolean> {
  if (session.rotatedTo === null || !(hasPendingTurn(session) || session.recoveries.length > 0)) return false
  if (await fileExists(sessions.pathOf(session.rotatedTo))) {
    clearPending(session)
    session.recoveries = []
  } else {
    session.rotatedTo = null
  }
  return true
}

async function refuseExisting(sessions: LoadedSessions, oldId: string, newId: string): Promise<void> {
  if (sessions.peek(newId) === undefined && !(await fileExists(sessions.pathOf(newId)))) return
  throw new TidemarkError('ROTATION_REFUSED', `Session ${newId} exists, so ${oldId} cannot take its id.`, {
    details: { oldId, newId },
  })
}
