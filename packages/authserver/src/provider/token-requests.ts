import { errors, type Provider } from 'oidc-provider'
import { PATHS } from '../paths/server-paths.ts'
import type { Consumptions } from './record-adapter.ts'
import { withTokenRequest } from './token-request.ts'

/** Consumes what a client presented after everything else has gone well; a client without refresh tokens gets its answer only then. */
export function addTokenRequests(provider: Provider, consumptions: Consumptions): void {
  provider.use(async (ctx, next) => {
    if (ctx.path !== PATHS.token) return await next()
    await withTokenRequest(async (request) => {
      await next()
      if (ctx.status !== 200) return
      try {
        await consumptions.settle(request)
      } catch (error) {
        if (!(error instanceof errors.InvalidGrant)) throw error
        ctx.status = 400
        ctx.body = { error: error.error, error_description: 'grant request is invalid' }
      }
    })
  })
}
