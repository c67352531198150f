import { type AuthServerConfig, upstreamScope } from '@thv/runconfig/auth-server-config'
import type { UpstreamTokens } from '../upstream-tokens.ts'
import type { LoginSession } from './login-session.ts'

/** The providers of one login, in order. */
export interface LoginPlan {
  readonly chain: readonly string[]
  /** The user that adds the chain to a login. Undefined: the first provider of the chain says who the user is. */
  readonly session: LoginSession | undefined
}

type Upstreams = AuthServerConfig['upstreams']

/** Providers that a login with these scopes can lead to: all that are required, and those that a scope names. */
export function providersFor(scopes: readonly string[], upstreams: Upstreams): readonly string[] {
  return upstreams
    .filter(({ name, login_policy: policy }) => policy === 'required' || scopes.includes(upstreamScope(name)))
    .map(({ name }) => name)
}

export function isOnDemand(provider: string, upstreams: Upstreams): boolean {
  return upstreams.some(({ name, login_policy: policy }) => name === provider && policy === 'onDemand')
}

/**
 * A user who logged in a short while ago, and whose client asks for further providers, is led to these alone: where nothing is stored yet,
 * where the tokens have ended, and where the user did not log in in this session.
 */
export async function planLogin(
  scopes: readonly string[],
  session: LoginSession | undefined,
  { upstreams, tokens }: { upstreams: Upstreams; tokens: UpstreamTokens },
): Promise<LoginPlan> {
  const whole = { chain: providersFor(scopes, upstreams), session: undefined }
  const named = upstreams.map(({ name }) => name).filter((name) => scopes.includes(upstreamScope(name)))
  const required = providersFor([], upstreams)
  if (session === undefined || named.length === 0 || required.some((name) => !session.providers.includes(name))) return whole
  const isOpen = async (provider: string) => {
    if (!session.providers.includes(provider)) return true
    const { kind } = await tokens.use({ account: session.account, provider })
    return kind === 'missing' || kind === 'ended'
  }
  const open = await Promise.all(named.map(isOpen))
  const chain = named.filter((_, index) => open[index])
  const [first = ''] = required
  return chain.length === 0 || chain.includes(first) ? whole : { chain, session }
}
