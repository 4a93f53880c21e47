import { TidemarkError } from '../../base/errors.js'
import { isRecord } from './outcome.js'

/** What settlement needs to know, whoever asks and whenever. */
export interface Receipt {
  /** The provider session. */
  readonly session: string
  /** The sessions before it that were given up, to be deleted in the end. */
  readonly givenUp: readonly string[]
  /** How many messages the segment has. */
  readonly messages: number
  /** The commit tasks; none when the server no longer lists them. */
  readonly tasks: readonly string[]
  /** `archive_001`, for servers that forgot the task. */
  readonly archive: string
}

const VERSION = 1

export const writeReceipt = (receipt: Receipt): string => JSON.stringify({ v: VERSION, ...receipt })

export function readReceipt(text: string): Receipt {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw unreadable('it is not JSON', error)
  }
  if (!isRecord(value)) throw unreadable('it is not an object')
  const { v, session, givenUp, messages, tasks, archive } = value
  if (typeof v === 'number' && v > VERSION)
    throw new TidemarkError(
      'FILE_NEWER',
      `The receipt was written by a newer tidemark (version ${v}; this one reads up to ${VERSION}). Update tidemark to settle it.`,
    )
  const strings = (list: unknown): list is string[] =>
    Array.isArray(list) && list.every((each) => typeof each === 'string')
  if (v !== VERSION || typeof session !== 'string' || typeof messages !== 'number' || typeof archive !== 'string')
    throw unreadable('a field is missing')
  if (!strings(tasks) || !strings(givenUp)) throw unreadable('a field is missing')
  return { session, givenUp, messages, tasks, archive }
}

const unreadable = (why: string, cause?: unknown): TidemarkError =>
  new TidemarkError('CORRUPT', `Expected a receipt of the OpenViking provider, but ${why}.`, {
    ...(cause !== undefined && { cause }),
  })
