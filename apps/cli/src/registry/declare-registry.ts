import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { applyManifests, isPlatformObject } from '@thv/cluster/platform/apply-manifests'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { isObject } from '@thv/kernel/json'
import type { KubeClient } from '@thv/kube/client/client'
import type { Logger } from '@thv/telemetry/log'
import { REGISTRY_KEY, registryManifests, registryType } from './platform-registry.ts'

export interface DeclareOptions {
  /** The data folder of the platform. */
  readonly folder: string
  readonly client: KubeClient
  readonly configFile?: string | undefined
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** Ends with the platform. */
  readonly signal: AbortSignal
  readonly clock?: Clock
}

const LOOK_MS = 1_000

/** Declares the registry of the platform, an MCPRegistry, and then follows its configuration file. */
export async function declareRegistry(options: DeclareOptions): Promise<void> {
  const { configFile, log } = options
  forgetOldNote(options.folder)
  if (!(await isOurs(options))) {
    log.warn('MCPRegistry default/default was not made by the platform; it stays as it is')
    return
  }
  const text = configFile === undefined ? undefined : readFileSync(configFile, 'utf8')
  await apply(options, text)
  if (configFile !== undefined && text !== undefined) void follow({ ...options, configFile }, text)
}

/** Removes what an earlier start declared. Published servers stay in the data folder. */
export async function removeRegistry(options: DeclareOptions): Promise<void> {
  forgetOldNote(options.folder)
  const { client, signal } = options
  const live = await client.tryGet(registryType, REGISTRY_KEY, { signal })
  if (live !== undefined && isPlatformObject(live)) await client.delete(registryType, REGISTRY_KEY, { signal })
}

async function isOurs({ client, signal }: DeclareOptions): Promise<boolean> {
  const live = await client.tryGet(registryType, REGISTRY_KEY, { signal })
  return live === undefined || isPlatformObject(live)
}

async function apply(options: DeclareOptions, text: string | undefined): Promise<void> {
  const { folder, configFile, variables, client, signal, clock = systemClock } = options
  const config = configFile === undefined || text === undefined ? undefined : { file: configFile, text }
  await applyManifests(await registryManifests({ folder, config, variables }), { client, clock, signal })
}

/** Declares the registry again whenever the file changes. Never rejects. */
async function follow(options: DeclareOptions & { readonly configFile: string }, first: string): Promise<void> {
  const { configFile, log, signal, clock = systemClock } = options
  let applied = first
  let problem = ''
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal).catch(() => undefined) // the platform stops: the loop sees it
    if (signal.aborted) return
    try {
      const text = readFileSync(configFile, 'utf8')
      if (text !== applied) {
        await apply(options, text)
        log.info('applied the changed configuration of the registry', { file: configFile })
      }
      applied = text
      problem = ''
    } catch (error) {
      const now = errorMessage(error)
      if (now !== problem && !signal.aborted) log.warn('cannot apply the configuration of the registry', { file: configFile, error: now })
      problem = now
    }
  }
}

/** Earlier versions wrote the address of the registry there. A file of the user with that name stays. */
function forgetOldNote(folder: string): void {
  const path = join(folder, 'registry.json')
  if (!isOldNote(path)) return
  try {
    rmSync(path, { force: true })
  } catch (cause) {
    throw new ThvError('data_folder_failed', `${path} cannot be removed`, { cause })
  }
}

function isOldNote(path: string): boolean {
  try {
    const note: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isObject(note) && typeof note['url'] === 'string' && Object.keys(note).every((key) => key === 'url' || key === 'problem')
  } catch {
    return false // there is none, or it is not ours
  }
}
