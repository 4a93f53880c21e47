import type { ToolSchema } from '../model/model.js'

export interface Tool {
  readonly schema: ToolSchema
  /** Gives text for the model. A throw is shown to the model as an error, so its message must be fit for that. */
  run(args: unknown): string | Promise<string>
}
