import type { FixtureAdmin } from './http/admin.ts'
import { serveHttp } from './http/http-server.ts'
import type { FixtureOptions } from './state/options.ts'
import type { FixtureStats } from './state/stats.ts'
import { createWorld } from './state/world.ts'

export interface Fixture extends AsyncDisposable {
  /** Where a client connects to. */
  readonly url: string
  readonly stats: FixtureStats
  readonly admin: FixtureAdmin
  /** True after the tool `crash`: the port is closed, as if the process had died. */
  readonly crashed: boolean
  stop(): Promise<void>
}

/** Starts the fixture server inside this process. For stdio see {@link fixtureCommand}: it needs a process of its own. */
export async function startFixture(options: FixtureOptions & { readonly transport?: 'http' | 'sse' } = {}): Promise<Fixture> {
  const life = new AbortController()
  let crashed = false
  let closing: Promise<void> | undefined
  const stop = () => {
    closing ??= http.close()
    life.abort(new Error('fixture stopped'))
    world.tasks.close()
    return closing
  }
  const crash = () => {
    crashed = true
    void stop()
  }
  const world = createWorld(options, { signal: life.signal, crash })
  const http = await serveHttp(world)
  return {
    url: http.url,
    stats: world.stats,
    admin: http.admin,
    get crashed() {
      return crashed
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
