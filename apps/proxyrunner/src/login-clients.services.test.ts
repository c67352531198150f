import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOutbound, type Outbound } from '@thv/http/outbound/outbound'
import { type ClientIdentity, type OAuthClient, type OAuthClientOptions, REDIRECT_URI } from '@thv/testkit/oauth/oauth-client'
import { connectPython } from '@thv/testkit/oauth/python-client'
import { connectV1, connectV2 } from '@thv/testkit/oauth/typescript-clients'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type LoginRunner, startLoginRunner } from './testing/login-runner.ts'

/* The official clients log in through the authorization server of a runner, as each of the three kinds of clients that it knows. */

const GRANTS = ['authorization_code', 'refresh_token']
const DOCUMENT_URL = 'https://client.example.com/oauth/client.json'
/** Without a port, as some clients register it: the port is free on loopback. */
const PORTLESS = 'http://localhost/callback'

const CLIENTS: readonly [string, (options: OAuthClientOptions) => Promise<OAuthClient>, 'legacy' | 'modern'][] = [
  ['TypeScript v1', connectV1, 'legacy'],
  ['TypeScript v2 in the era before 2026', connectV2, 'legacy'],
  ['TypeScript v2', connectV2, 'modern'],
  ['Python in the era before 2026', connectPython, 'legacy'],
  ['Python', connectPython, 'modern'],
]

describe('a runner with an authorization server and a real provider', () => {
  const stack = new AsyncDisposableStack()
  let login: LoginRunner
  let fixedId: string
  let portlessId: string
  let documents = 0

  beforeAll(async () => {
    const server = createServer((_request, response) => {
      documents++
      const document = {
        ...{ client_id: DOCUMENT_URL, client_name: 'Documented', redirect_uris: [REDIRECT_URI], grant_types: GRANTS },
        token_endpoint_auth_method: 'none',
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    stack.defer(() => void server.close())
    const port = (server.address() as AddressInfo).port
    const config = { disable_upstream_token_injection: true, cimd: { enabled: true } }
    login = await startLoginRunner(stack, config, { providers: withDocumentAt(`http://127.0.0.1:${port}`) })
    fixedId = await registered(login.issuer, REDIRECT_URI)
    portlessId = await registered(login.issuer, PORTLESS)
  })
  afterAll(() => stack.disposeAsync())

  const callsATool = async (connect: (typeof CLIENTS)[number][1], options: Omit<OAuthClientOptions, 'url' | 'user' | 'grantTypes'>) => {
    await using client = await connect({ url: login.runner.url, user: 'ada', grantTypes: GRANTS, ...options })
    expect(await client.tools()).toContain('echo')
    const { content } = await client.call('echo', { text: 'logged in' })
    expect(JSON.stringify(content)).toContain('logged in')
    expect(client.visits).toHaveLength(1)
    return client.visits[0]?.searchParams.get('client_id') ?? ''
  }

  describe.each(CLIENTS)('%s calls a tool', (_, connect, era) => {
    it('after it has registered [002-092]', async () => {
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

async function registered(issuer: string, redirectUri: string): Promise<string> {
  const answer = await fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'fixed', redirect_uris: [redirectUri], grant_types: GRANTS }),
  })
  const { client_id: id } = (await answer.json()) as { client_id: string }
  return id
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
