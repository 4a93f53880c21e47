/** What a process remembers between attempts; forgetting it costs a session on the server, never a turn. */
export class Memo {
  static readonly #LIMIT = 1000
  /** False once the server turned out to have no batch route (before v0.3.20). */
  batchesWork = true
  /** False once the server gave a session another name than it was asked for (v0.2.x). */
  namesWork = true
  readonly #quiet = new Map<string, number>()

  /** Every request into this session is over, so what it holds is final and may be added to. */
  setQuiet(key: string, series: number): void {
    this.#quiet.set(key, series)
    const [oldest] = this.#quiet.keys()
    if (this.#quiet.size > Memo.#LIMIT && oldest !== undefined) this.#quiet.delete(oldest)
  }

  setBusy(key: string): void {
    this.#quiet.delete(key)
  }

  isQuiet(key: string, series: number): boolean {
    return this.#quiet.get(key) === series
  }
}
