export { RunJournal, type FsyncMode, type RunJournalOptions } from './run-journal.js'
export type { Retention } from './retention.js'
export type { JournalEvent, JournalEventName, JournalPayloads, PruneReport, RunState, RunSummary } from './types.js'
