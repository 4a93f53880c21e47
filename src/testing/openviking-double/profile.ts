/**
 * Servers of several ages, as the release notes and pull requests tell (section "wire drift" of docs/openviking.md).
 * A flag says what that release does, never what the adapter should make of it.
 */
export type OpenVikingProfile = '0.4.16' | '0.4.6' | '0.3.4' | '0.2.8'

export interface Features {
  /** `POST …/messages/batch`: v0.3.20 (#2213). */
  readonly batch: boolean
  /** `turn_id`, `message_kind` and `source_message_ids` are kept: v0.4.12 (#3380). Older servers ignore the keys. */
  readonly tags: boolean
  /** `total_message_count`: v0.3.13 (#1764). */
  readonly totalCount: boolean
  /** `commit_count` and the other meta of `GET /sessions/{id}`: v0.2.11 (#900). Before, `message_count` only. */
  readonly meta: boolean
  /** `pending_tokens` in the answer to add: v0.4.12 (#3569). */
  readonly pendingTokens: boolean
  /** A no-op commit says `skipped` + `reason`: v0.4.7 (#2931). Before: `accepted`, `archived: false`, `task_id: null`. */
  readonly saysSkipped: boolean
  /** Phase 2 survives a restart: v0.4.10 (#3254). */
  readonly durableQueue: boolean
  /** What a restart makes of tasks when the queue is not durable: forgotten (#476), or `running` for ever (#3023). */
  readonly tasksSurvive: boolean
  /** `?wait=` is honoured, a second commit meanwhile is CONFLICT under HTTP 200: v0.2.6–v0.2.10 (#472, #476). */
  readonly waitFlag: boolean
  /** `/context` and `/archives/{id}`: v0.2.14 (#1040). */
  readonly context: boolean
  /** A missing session or archive is HTTP 200 with `status: "error"`: before v0.3.13 (#1764). */
  readonly softNotFound: boolean
  /** Create takes a `session_id`; before, the server always chose one itself. */
  readonly createTakesId: boolean
  /** Adding to a missing session creates it: v0.3.5 (#1348), and before v0.2.14. Between, 404 (hermes #72130). */
  readonly addCreates: boolean
  /** A failed archive blocks later commits of its session with 412: v0.2.14–v0.4.4 (#2775). */
  readonly failedArchiveBlocks: boolean
  /** `POST /tasks/{id}/cancel`: v0.4.12 (#3577). */
  readonly cancel: boolean
}

const newest: Features = {
  batch: true,
  tags: true,
  totalCount: true,
  meta: true,
  pendingTokens: true,
  saysSkipped: true,
  durableQueue: true,
  tasksSurvive: true,
  waitFlag: false,
  context: true,
  softNotFound: false,
  createTakesId: true,
  addCreates: true,
  failedArchiveBlocks: false,
  cancel: true,
}

const v046: Features = {
  ...newest,
  tags: false,
  pendingTokens: false,
  saysSkipped: false,
  durableQueue: false,
  cancel: false,
}

const v034: Features = {
  ...v046,
  batch: false,
  totalCount: false,
  tasksSurvive: false,
  softNotFound: true,
  addCreates: false,
  failedArchiveBlocks: true,
}

const v028: Features = {
  ...v034,
  meta: false,
  waitFlag: true,
  context: false,
  softNotFound: false,
  createTakesId: false,
  addCreates: true,
  failedArchiveBlocks: false,
}

export const profiles: Readonly<Record<OpenVikingProfile, Features>> = Object.freeze({
  '0.4.16': newest,
  '0.4.6': v046,
  '0.3.4': v034,
  '0.2.8': v028,
})
