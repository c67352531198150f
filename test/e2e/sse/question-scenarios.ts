import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'vitest'
import { PATIENT, type Scenario, withPeer } from './scenario.ts'

/** Requests of a server to its client. */
export const QUESTION_SCENARIOS: readonly Scenario[] = [
  withPeer(
    'the server may ask the model of the client',
    async (peer) => {
      expect(await peer.text('test_sampling', { prompt: 'Capital of Italy?' })).toContain('Rome, said of: Capital of Italy?')
    },
    {
      capabilities: { sampling: {} },
      prepare: (client) =>
        client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
          const content = params.messages[0]?.content as { text: string }
          return { role: 'assistant', model: 'm', content: { type: 'text', text: `Rome, said of: ${content.text}` } }
        }),
    },
  ),
  withPeer(
    'the server may ask the user, several things at a time, and a no is an answer',
    async (peer) => {
      expect(await peer.text('test_elicitation', { message: 'Who?' })).toBe('User response: action=accept, content={"username":"Who?"}')
      expect(await peer.text('test_elicitation', { message: 'decline' })).toBe('User response: action=decline, content={}')
      const { answers } = await peer.json('ask', { kind: 'elicitation', count: 5 })
      expect(Object.keys(answers as object)).toHaveLength(5)
    },
    {
      capabilities: { elicitation: {} },
      prepare: (client) =>
        client.setRequestHandler(ElicitRequestSchema, ({ params: { message } }) =>
          message === 'decline' ? { action: 'decline' } : { action: 'accept', content: { username: message } },
        ),
    },
  ),
  withPeer(
    'the server may ask for the roots, also when no call is under way',
    async (peer) => {
      expect(await peer.text('test_input_required_result_list_roots')).toBe('Roots: [{"uri":"file:///home/ada","name":"home"}]')
      await peer.text('later', { kind: 'roots', ms: 20 })
      const answers = async () => (await peer.json('late_answers'))['answers'] as object[]
      await expect.poll(answers, PATIENT).toContainEqual({ answer: { roots: [{ uri: 'file:///home/ada', name: 'home' }] } })
    },
    {
      capabilities: { roots: { listChanged: true } },
      prepare: (client) => client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home/ada', name: 'home' }] })),
    },
  ),
  withPeer('a client that cannot be asked is not asked', async (peer) => {
    expect(await peer.client.callTool({ name: 'test_missing_capability' })).toMatchObject({ isError: true })
    expect(peer.received.filter((message) => 'method' in message)).toEqual([])
  }),
]
