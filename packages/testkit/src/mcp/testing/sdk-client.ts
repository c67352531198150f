import { Client, type ClientOptions, type Transport } from '@modelcontextprotocol/client'
import { MODERN } from '../wire/protocol.ts'

export type ClientMode = 'auto' | 'legacy' | 'modern'

export interface SdkClient extends AsyncDisposable {
  readonly client: Client
  /** Methods of the notifications that arrived, in order. */
  readonly notifications: string[]
  /** The first text of a tool's result. */
  text(name: string, args?: Record<string, unknown>): Promise<string>
  json(name: string, args?: Record<string, unknown>): Promise<Record<string, unknown>>
}

/** The official client, able to answer whatever a server may ask. */
export async function connectSdk(transport: Transport, mode: ClientMode): Promise<SdkClient> {
  const client = new Client({ name: 'sdk-client', version: '2.4.0' }, { capabilities: CAPABILITIES, versionNegotiation: negotiation(mode) })
  const notifications: string[] = []
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada', color: 'red', value: 'yes' } }))
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///home/ada', name: 'home' }] }))
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    content: { type: 'text', text: 'Paris' },
    model: 'test-model',
  }))
  for (const method of NOTIFICATIONS) client.setNotificationHandler(method, () => void notifications.push(method))
  await client.connect(transport)
  const text = async (name: string, args: Record<string, unknown> = {}) => {
    const [first] = (await client.callTool({ name, arguments: args })).content
    if (first?.type !== 'text') throw new Error(`${name} returned no text`)
    return first.text
  }
  return {
    client,
    notifications,
    text,
    json: async (name, args) => JSON.parse(await text(name, args)) as Record<string, unknown>,
    [Symbol.asyncDispose]: () => client.close(),
  }
}

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

const NOTIFICATIONS = [
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/updated',
  'notifications/message',
] as const

function negotiation(mode: ClientMode): NonNullable<ClientOptions['versionNegotiation']> {
  return { mode: mode === 'modern' ? { pin: MODERN } : mode }
}
