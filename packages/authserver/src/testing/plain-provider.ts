import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A provider with OAuth 2 only, whose answers are as odd as a test wants. */
export interface PlainProvider extends AsyncDisposable {
  readonly base: string
  answer: object
  answerType: string
  user: object
  /** Sent back instead of a code. */
  refusal: string | undefined
  /** Token requests. */
  readonly forms: URLSearchParams[]
  readonly seen: string[]
  /** Bodies of registrations, with their Authorization. */
  readonly registrations: { readonly body: Record<string, unknown>; readonly authorization: string | undefined; readonly method: string }[]
  registration: object
  registrationStatus: number
}

export async function startPlainProvider(): Promise<PlainProvider> {
  const http = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://x')
    const json = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (url.pathname === '/authorize') {
      provider.seen.push(url.search)
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      back.searchParams.set('state', url.searchParams.get('state') ?? '')
      if (provider.refusal === undefined) back.searchParams.set('code', 'upstream-code')
      else back.searchParams.set('error', provider.refusal)
      response.writeHead(302, { location: back.href }).end()
    } else if (url.pathname === '/token') {
      provider.forms.push(new URLSearchParams(await text(request)))
      const body = provider.answerType.includes('json')
        ? JSON.stringify(provider.answer)
        : new URLSearchParams(provider.answer as Record<string, string>).toString()
      response.writeHead(200, { 'content-type': provider.answerType }).end(body)
    } else if (url.pathname.startsWith('/register')) {
      const sent = await text(request)
      const body = (sent === '' ? {} : JSON.parse(sent)) as Record<string, unknown>
      provider.registrations.push({ body, authorization: request.headers.authorization, method: request.method ?? '' })
      json(provider.registrationStatus, provider.registration)
    } else if (url.pathname === '/.well-known/oauth-authorization-server') {
      json(200, { issuer: provider.base, registration_endpoint: `${provider.base}/register` })
    } else {
      provider.seen.push(`${request.method} ${request.headers.authorization} ${request.headers['x-extra']}`)
      json(200, provider.user)
    }
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => http.once('listening', resolve))
  const provider: PlainProvider = {
    base: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    answer: {},
    answerType: 'application/json',
    user: {},
    refusal: undefined,
    forms: [],
    seen: [],
    registrations: [],
    registration: {},
    registrationStatus: 201,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
  return provider
}
