import type { AnswerMessage, ToolCall } from 'tidemark/sessions'

/** Gathers what a run puts out, in the shape in which a transcript keeps it. */
export class Answer {
  readonly messages: AnswerMessage[] = []
  readonly toolCalls: ToolCall[] = []
  #open = false

  get text(): string {
    return this.messages
      .map(({ content }) => content)
      .filter((content) => content !== '')
      .join('\n\n')
  }

  addText(text: string): void {
    const last = this.messages.at(-1)
    if (this.#open && last !== undefined) last.content += text
    else this.messages.push({ role: 'assistant', content: text })
    this.#open = true
  }

  /** Text behind a tool call starts a message of its own, so that the card stays between what was said. */
  addTool(call: Pick<ToolCall, 'name' | 'args'>): ToolCall {
    if (this.messages.length === 0) this.messages.push({ role: 'assistant', content: '' })
    const added = { ...call, messageIndex: this.messages.length - 1, done: false }
    this.toolCalls.push(added)
    this.#open = false
    return added
  }
}
