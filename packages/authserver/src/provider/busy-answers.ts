import { isThvError } from '@thv/kernel/errors'
import type { Provider, ProviderContext } from 'oidc-provider'
import { errorPage } from '../login/pages.ts'

/** Answers 503 with Retry-After while the store is away, where the library would answer 500: the client may send its request again. */
export function addBusyAnswers(provider: Provider): void {
  const failed = new WeakSet<ProviderContext>()
  provider.on('server_error', (ctx, error) => {
    if (isThvError(error, 'store_unavailable')) failed.add(ctx)
  })
  provider.use(async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      if (!isThvError(error, 'store_unavailable')) throw error
      return answerBusy(ctx, { isPage: false })
    }
    if (failed.has(ctx) && ctx.status === 500) answerBusy(ctx, { isPage: typeof ctx.body === 'string' })
  })
}

function answerBusy(ctx: ProviderContext, { isPage }: { isPage: boolean }): void {
  ctx.status = 503
  ctx.set('Retry-After', '2')
  ctx.body = isPage
    ? errorPage('The server cannot do this now. Try again in a moment.').html
    : { error: 'temporarily_unavailable', error_description: 'the server cannot do this now' }
}
