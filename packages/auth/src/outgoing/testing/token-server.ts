import type { ServerResponse } from 'node:http'
import { type Backend, type SeenRequest, startBackend } from '@thv/http/testing/backend'

export const CLIENT = { id: 'proxy:1', secret: 'p%ss word/é' }

export interface TokenServer extends AsyncDisposable {
  readonly url: string
  readonly backend: Backend
  /** The forms that were accepted, in their order. */
  readonly forms: URLSearchParams[]
  /** Instead of the usual answer. */
  answer: ((request: SeenRequest, response: ServerResponse) => void) | undefined
  /** Members over those of the usual answer; undefined removes one. */
  document: Readonly<Record<string, unknown>>
}

/** A token endpoint that takes nothing but correct requests of its one client: RFC 6749 §4.4 and RFC 8693 §2.1. */
export async function startTokenServer(): Promise<TokenServer> {
  const forms: URLSearchParams[] = []
  const backend = await startBackend((request, response) => {
    if (server.answer !== undefined) return server.answer(request, response)
    const form = new URLSearchParams(request.body)
    const problem = problemOf(request, form)
    if (problem !== undefined) return sendJson(response, 400, { error: problem })
    forms.push(form)
    const issued = `issued-${forms.length}`
    const usual = {
      access_token: form.has('subject_token') ? `${issued}.for.${form.get('subject_token')}` : issued,
      token_type: 'Bearer',
      expires_in: 600,
      ...(form.has('subject_token') && { issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }),
    }
    sendJson(response, 200, { ...usual, ...server.document })
  })
  const server: TokenServer = {
    url: `${backend.url}/token?tenant=a`,
    backend,
    forms,
    answer: undefined,
    document: {},
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  }
  return server
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function problemOf({ method, url, headers }: SeenRequest, form: URLSearchParams): string | undefined {
  if (method !== 'POST' || url !== '/token?tenant=a') return 'invalid_request'
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') return 'invalid_request'
  const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)
  const expected = Buffer.from(`${encoded(CLIENT.id)}:${encoded(CLIENT.secret)}`).toString('base64')
  if (headers.authorization !== `Basic ${expected}`) return 'invalid_client'
  const grant = form.get('grant_type')
  if (grant === 'client_credentials') return undefined
  if (grant !== 'urn:ietf:params:oauth:grant-type:token-exchange') return 'unsupported_grant_type'
  const isTyped = form.get('subject_token_type')?.startsWith('urn:ietf:params:oauth:token-type:') === true
  return form.get('subject_token') && isTyped ? undefined : 'invalid_request'
}
