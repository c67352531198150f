import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { createBareLogin } from './bare-login.ts'
import { REDIRECT_URI } from './visitor.ts'

/*
 * The library alone: its memory adapter, its own settings, one public client. With UPSTREAM its users log in at another provider, as ours do;
 * otherwise on the library's own pages.
 */

const upstream = process.env['UPSTREAM']
const server = createServer().listen(Number(process.env['PORT'] ?? '0'), '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'bench',
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [REDIRECT_URI],
    },
  ],
  ...(upstream !== undefined && {
    features: { devInteractions: { enabled: false } },
    // The other provider is the same library on the same host.
    cookies: { names: { session: 'bare_session', interaction: 'bare_interaction', resume: 'bare_resume' } },
  }),
})
const answer = provider.callback()
const login = upstream === undefined ? undefined : await createBareLogin(provider, issuer, JSON.parse(upstream))
server.on('request', (request: IncomingMessage, response: ServerResponse) => {
  if (login?.serves(request.url ?? '')) void login.handle(request, response)
  else void answer(request, response)
})
console.log(`listening ${issuer}`)
