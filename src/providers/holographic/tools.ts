/** A tool in the function format of OpenAI-compatible APIs. */
export interface ToolSchema {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description: string
    readonly parameters: Readonly<Record<string, unknown>>
  }
}

export const FACT_STORE = 'fact_store'
export const FACT_FEEDBACK = 'fact_feedback'

export const ACTIONS = [
  'add',
  'search',
  'probe',
  'related',
  'reason',
  'contradict',
  'update',
  'remove',
  'list',
] as const
export type Action = (typeof ACTIONS)[number]

export const RATINGS = ['helpful', 'unhelpful'] as const
export type Rating = (typeof RATINGS)[number]

export function toolSchemas(): ToolSchema[] {
  return [
    {
      type: 'function',
      function: {
        name: FACT_STORE,
        description:
          'Long-term memory of single facts. add: store one statement. search: find facts by words. probe: everything about one person or thing. ' +
          'related: the same and facts that mention it. reason: facts about all of several things. contradict: pairs of facts that cannot both be true. ' +
          'update, remove: correct or forget a fact. list: the most trusted facts. Look here before you ask the user something they may have said before.',
        parameters: {
          type: 'object',
          properties: {
            action: { type: 'string', enum: ACTIONS },
            content: { type: 'string', description: 'The statement, for add and update.' },
            query: { type: 'string', description: 'Words to look for, for search.' },
            entity: { type: 'string', description: 'A name, for probe and related.' },
            entities: { type: 'array', items: { type: 'string' }, description: 'Names, for reason.' },
            fact_id: { type: 'integer', description: 'Which fact, for update and remove.' },
            category: { type: 'string', enum: ['user_pref', 'project', 'tool', 'general'] },
            tags: { type: 'string', description: 'Comma-separated.' },
            trust_delta: { type: 'number', description: 'Added to the trust of a fact, for update.' },
            min_trust: { type: 'number', description: 'Least trust, 0 to 1, for search.' },
            limit: { type: 'integer', description: 'Most results, 10 if left out.' },
          },
          required: ['action'],
        },
      },
    },
    {
      type: 'function',
      function: {
        name: FACT_FEEDBACK,
        description:
          'Say whether a fact from memory was right and useful (helpful) or wrong or out of date (unhelpful). It changes how far the fact is trusted.',
        parameters: {
          type: 'object',
          properties: {
            action: { type: 'string', enum: RATINGS },
            fact_id: { type: 'integer' },
          },
          required: ['action', 'fact_id'],
        },
      },
    },
  ]
}
