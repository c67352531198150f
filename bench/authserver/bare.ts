import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { REDIRECT_URI } from './visitor.ts'

/* The library alone: its memory adapter, its own pages, its own settings, one public client. */

const server = createServer().listen(0, '127.0.0.1')
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
})
server.on('request', provider.callback())
console.log(`listening ${issuer}`)
