import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Subject } from '@thv/authz/access/principal'
import { readAuthzDocument } from '@thv/authz/load/authz-document'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import { configMaps } from '@thv/kube/objects/resource-types'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { AUTHZ_KEY, AUTHZ_PATH, authzConfigMapName, RUN_CONFIG_KEY } from '@thv/runconfig/run-config-mount'
import { type ClusterFlags, withCluster } from '../cluster/open-cluster.ts'
import type { ProgramEnv } from '../program.ts'
import { toolArguments } from '../tool-arguments.ts'
import { explainAccess } from './explain-access.ts'

export interface ExplainOptions extends ClusterFlags {
  readonly claims?: string
  readonly tokenFile?: string
}

/** thv explain access NAME [TOOL]: the policies that decide a call, and why. */
export async function runExplainAccess(words: readonly string[], options: ExplainOptions, env: ProgramEnv): Promise<void> {
  const [server = '', tool, ...rest] = words
  const subject = subjectOf(options, env.cwd)
  const args = toolArguments(rest, { tool: tool ?? '', inputSchema: {}, cwd: env.cwd })
  await withCluster(options, env, async ({ client, namespace }) => {
    const map = await client.tryGet(configMaps, { namespace, name: `${server}-runconfig` })
    const text = map?.data?.[RUN_CONFIG_KEY]
    if (text === undefined)
      throw new ThvError('usage', `no proxy of a server ${JSON.stringify(server)} in namespace ${namespace}; "thv ls -A" lists the servers`)
    const config = configOf(text, server)
    const policies =
      config.authz_config_path === AUTHZ_PATH
        ? (await client.tryGet(configMaps, { namespace, name: authzConfigMapName(server) }))?.data?.[AUTHZ_KEY]
        : undefined
    env.out(explainAccess(policies === undefined ? config : withPolicies(config, policies), { subject, tool, args }))
  })
}

/** The file that the proxy mounts, in place of its path. */
export function withPolicies(config: RunConfig, text: string): RunConfig {
  const read = readAuthzDocument(text)
  if (!read.ok) throw new ThvError('usage', `the policies of ${config.name} do not work: ${read.problems.join('; ')}`)
  return { ...config, authz_config: read.config }
}

function configOf(text: string, server: string): RunConfig {
  const read = readRunConfig(JSON.parse(text))
  if (!read.ok)
    throw new ThvError('usage', `the run config of ${server} cannot be read: ${read.problems.map(({ path }) => path).join(', ')}`)
  return read.config
}

/** The signature of a token is not checked: the question is what its claims may do. */
export function subjectOf({ claims, tokenFile }: ExplainOptions, cwd: string): Subject | undefined {
  if (claims !== undefined && tokenFile !== undefined) throw new ThvError('usage', 'give one of --claims and --token-file')
  const file = claims ?? tokenFile
  if (file === undefined) return undefined
  const text = readText(file, cwd)
  const found: unknown =
    tokenFile === undefined ? parsed(text, file) : parsed(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString(), file)
  const subject = isObject(found) ? found['sub'] : undefined
  if (!isObject(found) || typeof subject !== 'string' || subject === '')
    throw new ThvError('usage', `${file} has no claims with a subject (sub)`)
  return { subject, claims: found }
}

function readText(file: string, cwd: string): string {
  try {
    return readFileSync(resolve(cwd, file), 'utf8').trim()
  } catch (error) {
    throw new ThvError('usage', `${file} cannot be read: ${errorMessage(error)}`)
  }
}

function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ThvError('usage', `${file} is neither a JSON object of claims nor a JWT`) // the parser's message would quote it
  }
}
