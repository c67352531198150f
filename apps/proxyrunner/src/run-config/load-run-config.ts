import { readFile } from 'node:fs/promises'
import { createBackoff } from '@thv/kernel/backoff'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { mountedPath } from '@thv/kernel/mounted-path'
import { isJsonObject, type Problem } from '@thv/runconfig/field'
import { parseJsonText } from '@thv/runconfig/json-text'
import { unsupportedFields } from '@thv/runconfig/middleware-table'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { invalidRunConfig, runConfigError, unsupportedMiddleware } from '@thv/runconfig/run-config-errors'
import {
  CHECKSUM_VARIABLE,
  GENERATION_VARIABLE,
  RUN_CONFIG_FOLDER,
  RUN_CONFIG_KEY,
  runConfigChecksum,
} from '@thv/runconfig/run-config-mount'
import { codeOf, readEnvFiles } from './env-files.ts'

/** Where a run config is looked for without --config; the first that exists is taken. */
export const RUN_CONFIG_PATHS = [`${RUN_CONFIG_FOLDER}/${RUN_CONFIG_KEY}`, '/etc/toolhive/runconfig.json', './runconfig.json'] as const

export interface LoadOptions {
  /** From --config: no other place is looked at. */
  readonly configPath?: string | undefined
  /** The positional argument: wins over `image`. */
  readonly image?: string | undefined
  /** From --k8s-pod-patch: wins over `k8s_pod_template_patch`. */
  readonly podPatch?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: (message: string) => void
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly searchPaths?: readonly string[]
  /** How long the mounted file may take to become the right one. Default 3 min: the kubelet refreshes every minute or two. */
  readonly checksumLimitMs?: number
}

export interface LoadedRunConfig {
  readonly config: RunConfig
  readonly file: string
  readonly warnings: readonly Problem[]
}

/** Finds, reads and checks the run config, or throws an error for the user. A returned config can be run: every setting in it is supported. */
export async function loadRunConfig(options: LoadOptions): Promise<LoadedRunConfig> {
  const { file, content } = await expectedContent(options)
  const parsed = parseJsonText(content)
  if (!parsed.ok) throw runConfigError('run_config_invalid', `run config ${file} is not JSON: line ${parsed.line}, column ${parsed.column}`)

  const notes: Problem[] = []
  const result = readRunConfig(withOverrides(parsed.value, options, notes))
  if (!result.ok) throw invalidRunConfig(file, result.problems)
  const config = await withEnvFiles(file, result.config)
  const unsupported = unsupportedFields(config)
  if (unsupported.length > 0) throw unsupportedMiddleware(unsupported)
  return { config, file, warnings: [...result.warnings, ...notes] }
}

interface Found {
  readonly file: string
  readonly content: string
}

/**
 * A ConfigMap that is mounted changes some time after the pod template that belongs to it, so a new pod may at first see the old file;
 * and an old pod that restarts may see the new one, which it was not made for.
 */
async function expectedContent(options: LoadOptions): Promise<Found> {
  const { env, log, signal, clock = systemClock, checksumLimitMs = 180_000 } = options
  const checksum = env[CHECKSUM_VARIABLE]?.toLowerCase()
  if (!checksum) return await findContent(options)

  const deadline = clock.monotonic() + checksumLimitMs
  const backoff = createBackoff({ baseMs: 250, maxMs: 5_000 })
  for (;;) {
    const found = await findContent(options)
    if (runConfigChecksum(found.content) === checksum) return found
    if (backoff.failures === 0) log(`run config ${found.file} is not yet the one this pod was made for (${CHECKSUM_VARIABLE}); waiting`)
    const left = deadline - clock.monotonic()
    if (left <= 0) {
      const limit = `${Math.round(checksumLimitMs / 1_000)} s`
      throw runConfigError('run_config_stale', `run config ${found.file} did not become the one of ${CHECKSUM_VARIABLE} within ${limit}`)
    }
    await clock.sleep(Math.min(backoff.next(), left), signal)
  }
}

async function findContent({ env, configPath, searchPaths = RUN_CONFIG_PATHS }: LoadOptions): Promise<Found> {
  const paths = configPath === undefined ? searchPaths : [configPath]
  for (const file of paths) {
    try {
      return { file, content: await readFile(mountedPath(file, env), 'utf8') }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') continue
      throw runConfigError('run_config_missing', `run config ${file} cannot be read (${codeOf(error)})`)
    }
  }
  if (configPath !== undefined) throw runConfigError('run_config_missing', `run config ${configPath} does not exist`)
  throw runConfigError('run_config_missing', `no run config: none of ${paths.join(', ')} exists; give one with --config FILE`)
}

/** The command line and the pod win over the file. */
function withOverrides(document: unknown, { image, podPatch, env }: LoadOptions, notes: Problem[]): unknown {
  if (!isJsonObject(document)) return document
  const overrides: Record<string, unknown> = {}
  if (image !== undefined) overrides['image'] = image
  if (podPatch !== undefined) overrides['k8s_pod_template_patch'] = podPatch
  const generation = env[GENERATION_VARIABLE]
  if (generation && /^\d{1,15}$/.test(generation)) overrides['mcpserver_generation'] = Number(generation)
  else if (generation) notes.push({ path: GENERATION_VARIABLE, message: 'is not a whole number of at least 0 and has no effect' })
  return { ...document, ...overrides }
}

async function withEnvFiles(file: string, config: RunConfig): Promise<RunConfig> {
  if (config.env_file_dir === undefined) return config
  const { vars, problems } = await readEnvFiles(config.env_file_dir)
  if (problems.length > 0) throw invalidRunConfig(file, problems)
  return { ...config, env_vars: { ...config.env_vars, ...vars } }
}
