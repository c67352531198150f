import { errors, type Provider } from 'oidc-provider'
import type { DelegateClients } from '../exchange/delegate-clients.ts'
import { GrantRefused } from '../exchange/grant-refused.ts'
import { TOKEN_EXCHANGE } from '../exchange/grant-types.ts'
import { EXCHANGE_PARAMETERS, type ExchangeDeps, exchangeToken } from '../exchange/token-exchange.ts'

export interface TokenExchangeOptions {
  readonly deps: ExchangeDeps
  readonly clients: DelegateClients
  readonly onExchange: (clientId: string, subject: string) => void
  readonly onRefused: (clientId: string, reason: string) => void
}

/** Token exchange as a grant of the library, which has authenticated the client. */
export function addTokenExchange(provider: Provider, { deps, clients, onExchange, onRefused }: TokenExchangeOptions): void {
  provider.registerGrantType(
    TOKEN_EXCHANGE,
    async (ctx) => {
      const { client, params = {} } = ctx.oidc
      const delegate = client && clients.find(client.clientId)
      if (delegate === undefined) throw new errors.InvalidClient('the client may not exchange tokens')
      try {
        const { answer, subject } = await exchangeToken(params, delegate, deps)
        ctx.body = answer
        onExchange(delegate.client_id, subject)
      } catch (error) {
        if (!(error instanceof GrantRefused)) throw error
        onRefused(delegate.client_id, error.reason)
        ctx.status = error.error === 'temporarily_unavailable' ? 503 : 400
        if (ctx.status === 503) ctx.set('Retry-After', '2')
        ctx.body = { error: error.error, error_description: error.message }
      }
    },
    EXCHANGE_PARAMETERS,
  )
}
