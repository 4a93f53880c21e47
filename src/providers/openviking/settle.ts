import { TidemarkError } from '../../base/errors.js'
import type { SettleAnswer } from '../../coordinator/agent.js'
import { failureOf, type OpenVikingApi, type TaskView } from './api.js'
import { archiveName, verdictOf } from './plan.js'
import type { Receipt } from './receipt.js'

/**
 * One look at what became of an accepted segment. A throw means unknown: the coordinator asks again, and parks the
 * segment with its receipt when its own deadline passes. A hung model leaves a task `running` for ever, so `pending`
 * is never turned into `failed` here: the extraction might still come.
 */
export async function lookUp(api: OpenVikingApi, receipt: Receipt, signal: AbortSignal): Promise<SettleAnswer> {
  const tasks: TaskView[] = []
  for (const id of receipt.tasks) {
    const outcome = await api.task(id, signal)
    // Expired, or a server in dev mode that was restarted: not failed, but unknown.
    if (outcome.kind === 'missing' && outcome.what === 'task') return verifyByArchive(api, receipt, signal)
    if (outcome.kind !== 'ok') throw failureOf('task status', outcome)
    tasks.push(outcome.result)
  }
  const verdict = verdictOf(tasks)
  switch (verdict) {
    case 'completed':
      return { status: 'committed' }
    case 'open':
      return { status: 'pending' }
    case 'failed':
      return { status: 'failed', error: extractionFailed(receipt.session, tasks[0]?.id) }
    case 'unlisted':
      return verifyByArchive(api, receipt, signal)
    case 'mixed':
      return countArchived(api, receipt, signal)
  }
}

/** A finished archive is there; a pending one shows its messages in the context; a failed one is only counted. */
async function verifyByArchive(api: OpenVikingApi, receipt: Receipt, signal: AbortSignal): Promise<SettleAnswer> {
  const archive = await api.archive(receipt.session, receipt.archive, signal)
  // Too long to read is there as well.
  if (archive.kind === 'ok' || (archive.kind === 'failed' && archive.code === 'RESPONSE_TOO_LONG'))
    return { status: 'committed' }
  if (archive.kind === 'failed') throw failureOf('archive', archive)
  const context = await api.context(receipt.session, signal)
  if (context.kind !== 'ok') throw unknown(receipt, 'and neither its archive nor its session can be read')
  const { messages, archives, failed } = context.result
  if (messages > 0) return { status: 'pending' }
  if (archives > 0 && failed === archives)
    return { status: 'failed', error: extractionFailed(receipt.session, receipt.tasks[0]) }
  throw unknown(receipt, 'and its archive is neither finished nor failed')
}

/** Several tasks, some failed: a repeated commit, or one the server made by itself. What is archived and done counts. */
async function countArchived(api: OpenVikingApi, receipt: Receipt, signal: AbortSignal): Promise<SettleAnswer> {
  const last = Number(/\d+$/.exec(receipt.archive)?.[0] ?? 1)
  let done = 0
  for (let index = 1; index <= last; index += 1) {
    const archive = await api.archive(receipt.session, archiveName(index), signal)
    if (archive.kind === 'ok') done += archive.result
    else if (archive.kind !== 'missing') throw failureOf('archive', archive)
  }
  if (done >= receipt.messages) return { status: 'committed' }
  return { status: 'failed', error: extractionFailed(receipt.session, receipt.tasks[0]) }
}

/** Why it failed is for the server to tell: its words may quote the conversation. */
export function extractionFailed(providerSession: string, task: string | undefined): TidemarkError {
  const where = task === undefined ? '' : ` GET /api/v1/tasks/${task} says why.`
  return new TidemarkError(
    'SETTLE_FAILED',
    `OpenViking accepted the segment and failed to extract it; it goes to a fresh provider session.${where}`,
    { retryable: true, details: { providerSession, ...(task !== undefined && { task }) } },
  )
}

const unknown = (receipt: Receipt, why: string): TidemarkError =>
  new TidemarkError(
    'PROVIDER_FAILED',
    `OpenViking no longer knows the task of this segment, ${why}. Whether it was extracted cannot be told; it stays unsettled.`,
    { retryable: true, details: { providerSession: receipt.session, archive: receipt.archive } },
  )
