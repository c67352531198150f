import { type Env, inheritedEnvironment } from '@thv/programs/program-environment'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runtimeError } from '../runtime-errors.ts'

/** Inherited < env_vars < secrets < what the transport demands: a server that listened elsewhere would never be found. */
export function serverEnvironment(config: RunConfig, env: Env, port: number | undefined): Record<string, string> {
  return { ...inheritedEnvironment(env), ...config.env_vars, ...secretVariables(config, env), ...transportVariables(config, port) }
}

function transportVariables({ transport }: RunConfig, port: number | undefined): Record<string, string> {
  if (port === undefined) return { MCP_TRANSPORT: transport }
  return { MCP_TRANSPORT: transport, MCP_PORT: String(port), FASTMCP_PORT: String(port), MCP_HOST: '127.0.0.1' }
}

/** `NAME,target=VARIABLE`: the value comes from our own environment, as with the environment provider of ToolHive (Go). */
function secretVariables({ secrets }: RunConfig, env: Env): Record<string, string> {
  return Object.fromEntries(
    secrets.map((reference) => {
      const [name = '', target = ''] = reference.split(',target=')
      const source = `TOOLHIVE_SECRET_${name}`
      const value = env[source]
      if (value === undefined)
        throw runtimeError('runtime_unsuitable', `secrets: the variable ${source}, which holds the value of ${target}, is not set`)
      return [target, value]
    }),
  )
}
