/** One line of the report. */
export interface BenchRow {
  name: string
  value: number
  unit: string
  /** What it was measured beside, in the same run. */
  limit?: string
  /** What it has to reach. */
  bar?: string
  ok?: boolean
}
