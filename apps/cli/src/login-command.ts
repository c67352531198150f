import { createOutbound } from '@thv/http/outbound/outbound'
import { ThvError } from '@thv/kernel/errors'
import { type LoginFlags, mayCarryTokens, serverAccess } from './login/server-access.ts'
import { connectTo, inLoginTime, type SessionOptions } from './mcp-session.ts'
import type { ProgramEnv } from './program.ts'
import { resolveServer } from './resolve-server.ts'

export interface LoginOptions extends SessionOptions, LoginFlags {}

/** thv login NAME|URL */
export async function runLogin(server: string, options: LoginOptions, env: ProgramEnv): Promise<void> {
  const url = await resolveServer(server, options, env)
  if (!mayCarryTokens(new URL(url))) throw new ThvError('usage', `${new URL(url).origin} is not https, so no token may be sent to it`)
  await using outbound = createOutbound()
  let hasVisited = false
  const openBrowser = (address: string) => {
    hasVisited = true
    env.openBrowser?.(address)
  }
  const access = serverAccess(url, { ...options, isAsked: true }, { env: { ...env, openBrowser }, outbound })
  const connect = () => connectTo(url, { ...options, env, outbound, access }, async () => {})
  await connect()
  if (hasVisited) env.err(`Logged in to ${url}\n`)
  else if ((await access.token(AbortSignal.timeout(30_000))) !== undefined)
    env.err(`Already logged in to ${url}; "thv logout" ends that.\n`)
  else if (await inLoginTime(env, (signal) => access.logIn(signal))) {
    await connect() // with the token, to see that it is taken
    env.err(`Logged in to ${url}\n`)
  } else env.err(`${url} does not ask for a login.\n`)
}
