import { get, legacy, modern, type Seed } from './fuzz-corpus.ts'

/* Requests that only a virtual server knows: tools of a backend of the other era, composite tools, tool search, calls that ask their client. */

/** Members of its file that these need, beside backends `modern` and `legacy`. */
export const VIRTUAL_CONFIG = {
  aggregation: {
    conflictResolution: 'priority',
    conflictResolutionConfig: { priorityOrder: ['modern', 'legacy'] },
    tools: [
      {
        workload: 'legacy',
        overrides: {
          echo: { name: 'legacy_echo' },
          test_elicitation: { name: 'legacy_ask' },
          test_tool_with_progress: { name: 'legacy_progress' },
        },
      },
    ],
  },
  compositeTools: [
    {
      name: 'composed',
      description: 'Asks, then says it.',
      parameters: { type: 'object', properties: { text: { type: 'string' } } },
      steps: [
        { id: 'ask', type: 'elicitation', message: 'What?', onCancel: { action: 'continue' }, onError: { action: 'continue' } },
        { id: 'say', tool: 'legacy.legacy_echo', dependsOn: ['ask'], arguments: { text: '{{.params.text}}' } },
      ],
    },
  ],
  optimizer: { alwaysListed: ['echo'] },
}

const ASKED = { _meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, sampling: {}, roots: {} } } }
const OK = [200]
const STATE = 'vmcp1.AAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
const ANSWER = { 'elicitation-1': { action: 'accept', content: { name: 'Ada' } } }

export const VIRTUAL_SEEDS: readonly Seed[] = [
  {
    name: 'modern call of a legacy tool',
    weight: 6,
    status: OK,
    build: modern('tools/call', { name: 'legacy_echo', arguments: { text: 'ü' } }),
  },
  {
    name: 'modern call of a legacy tool with progress',
    weight: 3,
    status: OK,
    build: modern('tools/call', { name: 'legacy_progress', arguments: {}, _meta: { progressToken: 'p1' } }),
  },
  {
    name: 'modern call that asks',
    weight: 3,
    build: modern('tools/call', { name: 'legacy_ask', arguments: { message: 'who?' }, ...ASKED }),
  },
  {
    name: 'modern answer with a forged state',
    weight: 3,
    build: modern('tools/call', {
      ...{ name: 'legacy_ask', arguments: { message: 'who?' }, requestState: STATE, inputResponses: ANSWER },
      ...ASKED,
    }),
  },
  { name: 'modern composite', weight: 3, status: OK, build: modern('tools/call', { name: 'composed', arguments: { text: 'x' } }) },
  { name: 'modern composite that asks', weight: 3, build: modern('tools/call', { name: 'composed', arguments: { text: 'x' }, ...ASKED }) },
  {
    name: 'modern composite with a forged state',
    weight: 3,
    build: modern('tools/call', { name: 'composed', arguments: {}, requestState: STATE, inputResponses: ANSWER, ...ASKED }),
  },
  {
    name: 'modern find_tool',
    weight: 4,
    status: OK,
    build: modern('tools/call', { name: 'find_tool', arguments: { tool_description: 'say it again', tool_keywords: ['echo'] } }),
  },
  {
    name: 'modern call_tool',
    weight: 4,
    status: OK,
    build: modern('tools/call', { name: 'call_tool', arguments: { tool_name: 'legacy_echo', parameters: { text: 'inner' } } }),
  },
  {
    name: 'modern completion',
    weight: 2,
    build: modern('completion/complete', {
      ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
      argument: { name: 'arg1', value: 'a' },
    }),
  },
  {
    name: 'modern listen to a resource',
    weight: 2,
    build: modern('subscriptions/listen', { notifications: { resourceSubscriptions: ['test://static-text', 'nothing://'] } }),
  },
  {
    name: 'legacy call of a legacy tool',
    weight: 6,
    status: OK,
    build: legacy('tools/call', { name: 'legacy_echo', arguments: { text: 'ö' } }),
  },
  { name: 'legacy composite', weight: 3, status: OK, build: legacy('tools/call', { name: 'composed', arguments: { text: 'y' } }) },
  {
    name: 'legacy find_tool',
    weight: 2,
    status: OK,
    build: legacy('tools/call', { name: 'find_tool', arguments: { tool_description: 'greet a person' } }),
  },
  {
    name: 'legacy call_tool',
    weight: 2,
    status: OK,
    build: legacy('tools/call', { name: 'call_tool', arguments: { tool_name: 'echo', parameters: { text: 'inner' } } }),
  },
  { name: 'legacy subscribe', weight: 2, build: legacy('resources/subscribe', { uri: 'test://watched-resource' }) },
  { name: 'legacy unsubscribe', weight: 1, build: legacy('resources/unsubscribe', { uri: 'test://watched-resource' }) },
  { name: 'status', weight: 1, status: OK, build: get('/status') },
  { name: 'health of backends', weight: 1, status: OK, build: get('/api/backends/health') },
]
