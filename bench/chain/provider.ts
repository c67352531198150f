import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** All that a protected runner calls elsewhere: an issuer of tokens, an endpoint that exchanges them, a collector that keeps nothing. */
export interface BenchProvider extends AsyncDisposable {
  readonly issuer: string
  readonly audience: string
  readonly tokenUrl: string
  /** Host and port for OTLP. */
  readonly collector: string
  token(subject: string): string
  /** Requests so far, without those of the collector. */
  readonly questions: number
  /** Of those, requests for tokens. */
  readonly tokenRequests: number
}

const AUDIENCE = 'bench'
const KEY_ID = 'bench-1'
const LIFE_SECONDS = 7_200

export async function startBenchProvider(): Promise<BenchProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'ES256', use: 'sig' }]
  let questions = 0
  let tokenRequests = 0
  const server = createServer((request, response) => {
    request.resume()
    if (request.url?.startsWith('/v1/') === true) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      return
    }
    questions++
    if (request.url === '/token') tokenRequests++
    const document = documents()[request.url ?? '']
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(document ?? {}))
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const collector = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `http://${collector}`

  function documents(): Readonly<Record<string, object>> {
    return {
      '/.well-known/openid-configuration': { issuer, jwks_uri: `${issuer}/jwks` },
      '/jwks': { keys },
      '/token': {
        access_token: `exchanged-${questions}`,
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: LIFE_SECONDS,
      },
    }
  }

  return {
    ...{ issuer, audience: AUDIENCE, tokenUrl: `${issuer}/token`, collector },
    token(subject) {
      const iat = Math.floor(Date.now() / 1_000)
      const claims = { iss: issuer, aud: AUDIENCE, sub: subject, iat, exp: iat + LIFE_SECONDS, scope: 'mcp', groups: ['bench'] }
      const signed = [{ alg: 'ES256', typ: 'JWT', kid: KEY_ID }, claims].map(encoded).join('.')
      return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
    },
    get questions() {
      return questions
    },
    get tokenRequests() {
      return tokenRequests
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
