import { errors, type Provider } from 'oidc-provider'
import { PATHS } from '../paths/server-paths.ts'
import type { Consumptions } from './record-adapter.ts'
import { withTokenRequest } from './token-request.ts'

export interface Granted {
  readonly type: 'auth_token_issue' | 'auth_token_refresh'
  readonly account: string | undefined
  readonly client: string | undefined
}

const EVENTS: Readonly<Record<string, Granted['type']>> = { authorization_code: 'auth_token_issue', refresh_token: 'auth_token_refresh' }

/** Consumes what a client presented after everything else has gone well; a client without refresh tokens gets its answer only then. */
export function addTokenRequests(provider: Provider, consumptions: Consumptions, onGranted: (grant: Granted) => void): void {
  provider.use(async (ctx, next) => {
    if (ctx.path !== PATHS.token) return await next()
    await withTokenRequest(async (request) => {
      await next()
      if (ctx.status !== 200) return
      try {
        await consumptions.settle(request)
        const type = EVENTS[ctx.oidc.params?.['grant_type'] ?? '']
        if (type !== undefined) onGranted({ type, account: ctx.oidc.account?.accountId, client: ctx.oidc.client?.clientName })
      } catch (error) {
        if (!(error instanceof errors.InvalidGrant)) throw error
        ctx.status = 400
        ctx.body = { error: error.error, error_description: 'grant request is invalid' }
      }
    })
  })
}
