import { WireClient } from '@thv/gateway/testing/wire-client'
import { isActiveAt } from '@thv/testkit/oidc/log-in'
import { openLink } from '@thv/testkit/oidc/sign-in'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callModern } from './testing/call-modern.ts'
import { type SaasVmcp, startSaasVmcp } from './testing/saas-vmcp.ts'
import { sharedStores } from './testing/shared-stores.ts'

const SAAS = ['tickets', 'chat'] as const
type Saas = (typeof SAAS)[number]
const LINKS = { elicitation: { url: {} } }
const ERAS = ['legacy', 'modern'] as const
type Era = (typeof ERAS)[number]

const step = (id: string, tool: string, more: object = {}) => ({ id, tool, ...more })
const COMPOSITE_TOOLS = [
  {
    name: 'both',
    description: 'D.',
    steps: [step('a', 'open.hello'), step('b', 'tickets.hello', { dependsOn: ['a'] }), step('c', 'chat.hello')],
  },
  {
    ...{ name: 'maybe', description: 'D.', parameters: { type: 'object', properties: { first: { type: 'boolean' } } } },
    steps: [
      step('a', 'open.hello', { condition: '{{.params.first}}' }),
      step('b', 'tickets.hello', { dependsOn: ['a'], condition: '{{not false}}' }),
    ],
  },
  {
    ...{ name: 'asking', description: 'D.' },
    steps: [
      step('a', 'open.hello'),
      { id: 'q', type: 'elicitation', message: 'Go on?', schema: { type: 'object', properties: {} }, dependsOn: ['a'] },
      step('b', 'tickets.hello', { dependsOn: ['q'], condition: '{{not false}}' }),
    ],
  },
]

describe('a virtual server over three backends, two of them with a provider on demand', () => {
  const stack = new AsyncDisposableStack()
  let saas: SaasVmcp<Saas>

  beforeAll(async () => {
    saas = await startSaasVmcp(stack, SAAS, { compositeTools: COMPOSITE_TOOLS, stores: sharedStores() })
  })
  afterAll(() => stack.disposeAsync())

  /** A client that shows links to its user, or one that does not. */
  async function open(era: Era, user: string, capabilities: object = LINKS) {
    const token = await saas.logIn(user)
    const wire = new WireClient(saas.vmcp.url, { authorization: `Bearer ${token}` })
    if (era === 'legacy') await wire.initialize(capabilities)
    const meta = { _meta: { 'io.modelcontextprotocol/clientCapabilities': capabilities } }
    return {
      call: (name: string, args: object = {}, more: object = {}) =>
        era === 'legacy' ? wire.call(name, args) : wire.modern('tools/call', { name, arguments: args, ...meta, ...more }),
    }
  }

  type Client = Awaited<ReturnType<typeof open>>

  /** The links that answer a call, by the name of the provider. */
  async function linksOf(client: Client, name: string, args: object = {}): Promise<Record<string, string>> {
    const { status, messages } = await client.call(name, args)
    expect(status).toBe(200)
    const { error, result } = messages.at(-1)
    const asked = Object.values<{ params: unknown }>(result?.inputRequests ?? {}).map(({ params }) => params)
    const links: { mode: string; url: string }[] = error?.data?.elicitations ?? asked
    expect(error?.code ?? result?.resultType).toBe(error === undefined ? 'input_required' : -32042)
    expect(links.every(({ mode }) => mode === 'url')).toBe(true)
    return Object.fromEntries(links.map(({ url }) => [/connect\/(\w+)\?/.exec(url)?.[1] ?? '', url]))
  }

  async function follow(links: Record<string, string>, user: string): Promise<void> {
    for (const [provider, link] of Object.entries(links))
      expect((await openLink(link, { user })).text).toContain(`${provider} is connected`)
  }

  const textOf = async (client: Client, name: string, args: object = {}): Promise<string> => {
    const { messages } = await client.call(name, args)
    return messages.at(-1).result?.content?.[0]?.text ?? JSON.stringify(messages)
  }
  const isTokenOf = (provider: Saas, sent: string) => isActiveAt(saas.idps[provider], sent.replace(/^Bearer /, ''))
  const visits = () => SAAS.map((name) => saas.idps[name].hits('/auth'))

  it.each(ERAS)('the first call to each leads to its login alone, with a link, and goes on in the same session (%s)', async (era) => {
    const user = `links-${era}`
    const client = await open(era, user)
    expect(await textOf(client, 'open_hello')).toBe('')
    for (const [at, name] of SAAS.entries()) {
      const before = visits()
      const links = await linksOf(client, `${name}_hello`)
      expect(Object.keys(links)).toEqual([name])
      expect(visits()).toEqual(before)
      await follow(links, user)
      const other = 1 - at
      expect(visits()[other]).toBe(before[other])
      expect(await isTokenOf(name, await textOf(client, `${name}_hello`))).toBe(true)
    }
  })

  it.each([
    ['an older client', 'legacy', {}],
    ['a client with forms alone', 'legacy', { elicitation: { form: {} } }],
    ['a client with forms alone', 'modern', { elicitation: { form: {} } }],
  ] as const)('%s (%s) is led there by the challenge instead', async (_, era, capabilities) => {
    const client = await open(era, 'challenged', capabilities)
    for (const name of SAAS) {
      const { status, headers } = await client.call(`${name}_hello`)
      const scopes = /scope="([^"]*)"/.exec(headers.get('www-authenticate') ?? '')?.[1]?.split(' ') ?? []
      expect([status, scopes.filter((scope) => scope.startsWith('upstream:'))]).toEqual([403, [`upstream:${name}`]])
    }
  })

  const callsOfOpen = () => saas.backends.open.backend.requests.filter(({ body }) => body.includes('tools/call')).length

  describe('a composite tool', () => {
    it.each(ERAS)('leads to all logins of its steps before the first of them runs, and works after them (%s)', async (era) => {
      const user = `composite-${era}`
      const client = await open(era, user)
      const before = callsOfOpen()
      const links = await linksOf(client, 'both')
      expect(Object.keys(links).toSorted()).toEqual(['chat', 'tickets'])
      expect(callsOfOpen()).toBe(before)
      await follow(links, user)
      expect(await textOf(client, 'both')).toMatch(/^Bearer /)
    })

    it.each(ERAS)('leads to the login of a step with a condition while nothing has run, and says so afterwards (%s)', async (era) => {
      const user = `maybe-${era}`
      const client = await open(era, user)
      expect(Object.keys(await linksOf(client, 'maybe', { first: false }))).toEqual(['tickets'])
      const failed = await textOf(client, 'maybe', { first: true })
      expect(failed).toContain('Workflow execution failed: step 2 of 2')
      expect(failed).toContain('tickets')
      await follow(await linksOf(client, 'maybe', { first: false }), user)
      expect(await isTokenOf('tickets', await textOf(client, 'maybe', { first: true }))).toBe(true)
    })

    it('that has asked its user leads to no login any more, because a repetition would run its first steps twice', async () => {
      const client = await open('modern', 'asked', { elicitation: { form: {}, url: {} } })
      const before = callsOfOpen()
      const asked = (await client.call('asking')).messages.at(-1).result
      expect(asked).toMatchObject({ resultType: 'input_required', inputRequests: { 'elicitation-1': { params: { message: 'Go on?' } } } })
      const { requestState } = asked
      const inputResponses = { 'elicitation-1': { action: 'accept', content: {} } }
      const { messages } = await client.call('asking', {}, { requestState, inputResponses })
      expect(messages.at(-1).result).toMatchObject({ isError: true, resultType: 'complete' })
      expect(messages.at(-1).result.content[0].text).toContain('Workflow execution failed: step 3 of 3')
      expect(callsOfOpen()).toBe(before + 1)
    })

    it('is a challenge for a user who declined, and for clients without links', async () => {
      const modern = await open('modern', 'decliner')
      const inputResponses = Object.fromEntries(SAAS.map((name) => [`login-${name}`, { action: 'decline' }]))
      const declined = await modern.call('both', {}, { inputResponses })
      const plain = await open('legacy', 'decliner', {})
      // Found out before the first step, and by a step.
      for (const { status, headers } of [declined, await plain.call('both'), await plain.call('maybe', { first: false })])
        expect([status, headers.get('www-authenticate')]).toEqual([403, expect.stringMatching(/upstream:(tickets|chat)/)])
    })

    it('names the provider to a client without links, too, once a step has run', async () => {
      const client = await open('legacy', 'unlinked', {})
      expect(await textOf(client, 'maybe', { first: true })).toContain('the call needs a login to tickets')
    })
  })

  it('answers for the others while one provider is down', async () => {
    const token = await saas.logIn('links-modern')
    const capabilities = LINKS
    const call = (name: string) => callModern(saas.vmcp.url, name, { token, capabilities })
    const client = await open('modern', 'links-modern')
    for (const name of SAAS) await follow(await linksOf(client, `${name}_hello`), 'links-modern')
    saas.idps.chat.fault = 'down'
    saas.backends.chat.accepts = () => false
    const { messages } = await client.call('chat_hello')
    expect(messages.at(-1)).toHaveProperty('error')
    expect(await isTokenOf('tickets', await textOf(client, 'tickets_hello'))).toBe(true)
    expect(await textOf(client, 'open_hello')).toBe('')
    // A session of its own is led to the login that works, and to that alone.
    expect((await call('tickets_hello')).result?.resultType).toBe('input_required')
  })
})
