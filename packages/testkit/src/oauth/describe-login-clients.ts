import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClientIdentity, type OAuthClient, type OAuthClientOptions, REDIRECT_URI } from './oauth-client.ts'
import { connectPython } from './python-client.ts'
import { connectV1, connectV2 } from './typescript-clients.ts'

/** An MCP endpoint with a tool `echo`, and the authorization server in front of it. */
export interface LoginEndpoint {
  readonly url: string
  readonly issuer: string
}

/** Starts the endpoint. It accepts metadata documents, and asks for them with this outbound. */
export type StartLoginEndpoint = (stack: AsyncDisposableStack, providers: Outbound) => Promise<LoginEndpoint>

const GRANTS = ['authorization_code', 'refresh_token']
const DOCUMENT_URL = 'https://client.example.com/oauth/client.json'
/** Without a port, as some clients register it: the port is free on loopback. */
const PORTLESS = 'http://localhost/callback'
/** Registrations are limited to one a second. */
const MAX_ATTEMPTS = 10

type Connect = (options: OAuthClientOptions) => Promise<OAuthClient>

const CLIENTS: readonly [string, Connect, 'legacy' | 'modern'][] = [
  ['TypeScript v1', connectV1, 'legacy'],
  ['TypeScript v2 in the era before 2026', connectV2, 'legacy'],
  ['TypeScript v2', connectV2, 'modern'],
  ['Python in the era before 2026', connectPython, 'legacy'],
  ['Python', connectPython, 'modern'],
]

/** The official clients log in through an authorization server, as each of the three kinds of clients that it knows, and call a tool. */
export function describeLoginClients(title: string, start: StartLoginEndpoint): void {
  describe(title, () => {
    const stack = new AsyncDisposableStack()
    let endpoint: LoginEndpoint
    let fixedId: string
    let portlessId: string
    let documents = 0

    beforeAll(async () => {
      const place = await startDocument(stack, () => void documents++)
      endpoint = await start(stack, withDocumentAt(place))
      fixedId = await registered(endpoint.issuer, REDIRECT_URI)
      portlessId = await registered(endpoint.issuer, PORTLESS)
    })
    afterAll(() => stack.disposeAsync())

    const callsATool = async (connect: Connect, options: Omit<OAuthClientOptions, 'url' | 'user' | 'grantTypes'>) => {
      const all = { url: endpoint.url, user: 'ada', grantTypes: GRANTS, ...options }
      await using client = await admitted(endpoint.issuer, () => connect(all))
      expect(await client.tools()).toContain('echo')
      const { content } = await client.call('echo', { text: 'logged in' })
      expect(JSON.stringify(content)).toContain('logged in')
      expect(client.visits).toHaveLength(1)
      return client.visits[0]?.searchParams.get('client_id') ?? ''
    }

    describe.each(CLIENTS)('%s calls a tool', (_, connect, era) => {
      it('after it has registered', async () => {
        expect(await callsATool(connect, { era })).toMatch(/^c1\./)
      })

      it('with the URL of its metadata document as its id', async () => {
        const identity: ClientIdentity = { metadataUrl: DOCUMENT_URL }
        expect(await callsATool(connect, { era, identity })).toBe(DOCUMENT_URL)
        expect(documents).toBeGreaterThan(0)
      })

      it('with the id of a client that it was configured with', async () => {
        expect(await callsATool(connect, { era, identity: { clientId: fixedId } })).toBe(fixedId)
      })
    })

    it('a client that registered http://localhost/callback comes back at the port that it listens on', async () => {
      const identity: ClientIdentity = { clientId: portlessId }
      expect(await callsATool(connectV2, { era: 'modern', identity, redirectUri: 'http://localhost:53127/callback' })).toBe(portlessId)
    })
  })
}

async function startDocument(stack: AsyncDisposableStack, onRead: () => void): Promise<string> {
  const document = {
    ...{ client_id: DOCUMENT_URL, client_name: 'Documented', redirect_uris: [REDIRECT_URI], grant_types: GRANTS },
    token_endpoint_auth_method: 'none',
  }
  const server = createServer((_request, response) => {
    onRead()
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  stack.defer(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The host of the document is on loopback, where no document may be: its own tests prove that guard. */
function withDocumentAt(place: string): Outbound {
  const real = createOutbound()
  return {
    target: (options) => real.target(options.url === DOCUMENT_URL ? { url: place } : options),
    get stats() {
      return real.stats
    },
    close: () => real.close(),
    [Symbol.asyncDispose]: () => real.close(),
  }
}

async function register(issuer: string, redirectUri: string): Promise<Response> {
  return await fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'fixed', redirect_uris: [redirectUri], grant_types: GRANTS }),
  })
}

/** A registration that is refused comes again when the server says. */
async function registered(issuer: string, redirectUri: string): Promise<string> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const answer = await register(issuer, redirectUri)
    if (answer.status === 201) return ((await answer.json()) as { client_id: string }).client_id
    await answer.body?.cancel()
    expect(answer.status).toBe(429)
    await systemClock.sleep(Number(answer.headers.get('retry-after')) * 1_000)
  }
  throw new Error(`the registration was refused ${MAX_ATTEMPTS} times`)
}

/** The clients do not tell when they may come again, so the server is asked. */
async function admitted<T>(issuer: string, connect: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await connect()
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !/\b429\b|too many requests/i.test(String(error))) throw error
      const answer = await register(issuer, REDIRECT_URI)
      await answer.body?.cancel()
      await systemClock.sleep(Number(answer.headers.get('retry-after') ?? 0) * 1_000)
    }
  }
}
