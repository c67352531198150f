import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'

/** Waits on 127.0.0.1 for the browser that comes back from an authorization server (RFC 8252 §7.3). */
export interface LoopbackReceiver extends AsyncDisposable {
  readonly redirectUri: string
  /** The query of the first visit to the redirect URI with this `state`; all others are turned away. */
  response(state: string, signal: AbortSignal): Promise<URLSearchParams>
}

const PATH = '/callback'
const LINGER_MS = 1_000
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  connection: 'close',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** `port` 0 is any free one. Throws `listen_failed`. */
export async function openLoopbackReceiver(port = 0): Promise<LoopbackReceiver> {
  let expected: string | undefined
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>()
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    const url = URL.parse(`http://127.0.0.1${request.url ?? ''}`)
    const isOurs =
      request.method === 'GET' && url?.pathname === PATH && expected !== undefined && url.searchParams.get('state') === expected
    // A page of another origin that guesses the port learns nothing and ends nothing.
    response.writeHead(isOurs ? 200 : 404, PAGE_HEADERS)
    response.end(isOurs ? page('You can close this window and go back to the terminal.') : page('This is not the login that was expected.'))
    if (isOurs && url) resolve(url.searchParams)
  })
  server.maxConnections = 32
  await new Promise<void>((listening, reject) => {
    server.once('error', (cause) => reject(new ThvError('listen_failed', `127.0.0.1:${port} cannot be listened on`, { cause })))
    server.listen(port, '127.0.0.1', listening)
  })
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    response(state, signal) {
      expected = state
      return abortable(promise, signal)
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((done) => server.close(done))
      // The page must still get out; a browser that does not read it is not waited for.
      const late = setTimeout(() => server.closeAllConnections(), LINGER_MS)
      await closed
      clearTimeout(late)
    },
  }
}

function page(text: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>thv</title><p>${text}</p></html>\n`
}
