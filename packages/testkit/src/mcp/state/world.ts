import { randomUUID } from 'node:crypto'
import type { Tool } from '../features/call.ts'
import { createCatalog } from '../tools/catalog.ts'
import type { JsonObject } from '../wire/json-rpc.ts'
import { type EraSupport, servedVersions } from '../wire/protocol.ts'
import { type ChangeBus, createChangeBus } from './changes.ts'
import { type FixtureOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { createStateSeal, type StateSeal } from './state-seal.ts'
import { StatsRecorder } from './stats.ts'
import { createTaskStore, type TaskStore } from './task-store.ts'

/** Everything one running fixture knows, whatever the transport. */
export interface World {
  readonly options: ResolvedOptions
  /** New for each start, so a test can tell a restarted server from the old one. */
  readonly instance: string
  readonly changes: ChangeBus
  readonly tasks: TaskStore
  readonly stats: StatsRecorder
  readonly seal: StateSeal
  /** By name; a test may add and remove some. */
  readonly tools: Map<string, Tool>
  /** Results of the requests that the tool `later` sent, oldest first. */
  readonly lateAnswers: JsonObject[]
  /** May be changed while it runs, as if the server had been upgraded. */
  era: EraSupport
  /** Aborts when the fixture stops: nothing may outlive it. */
  readonly signal: AbortSignal
  /** Ends the process, or in a test process everything a peer could see of it. */
  crash(code: number): void
  /** Ends open listen streams as a server does that shuts down politely. */
  endListens(): void
  readonly listenEnds: Set<() => void>
}

export interface WorldHooks {
  readonly signal: AbortSignal
  crash(code: number): void
}

export function createWorld(options: FixtureOptions, hooks: WorldHooks): World {
  const resolved = resolveOptions(options)
  const changes = createChangeBus()
  const listenEnds = new Set<() => void>()
  return {
    options: resolved,
    instance: randomUUID(),
    changes,
    tasks: createTaskStore(changes),
    stats: new StatsRecorder(),
    seal: createStateSeal(),
    tools: createCatalog(resolved),
    lateAnswers: [],
    era: resolved.era,
    signal: hooks.signal,
    crash: hooks.crash,
    endListens: () => {
      for (const end of [...listenEnds]) end()
    },
    listenEnds,
  }
}

export function serverInfo(world: World): { name: string; title: string; version: string } {
  return { name: world.options.name, title: 'MCP fixture server', version: '1.0.0' }
}

export function supportedVersions(world: World): string[] {
  return servedVersions(world.era)
}
