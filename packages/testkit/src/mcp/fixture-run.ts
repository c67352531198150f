import { closeSync } from 'node:fs'
import { parseFixtureArguments } from './fixture-arguments.ts'
import { serveHttp } from './http/http-server.ts'
import { createWorld, type World } from './state/world.ts'
import { type StdioEnds, serveStdio } from './stdio.ts'

/** Set by a parent that wants the HTTP form to end with it, however the parent ends. */
export const STOP_WITH_STDIN = 'MCP_FIXTURE_STOP_WITH_STDIN'

/** The fixture as a process. Over HTTP it prints `listening URL`; over stdio it ends with its input. */
export async function runFixture(argv: readonly string[]): Promise<void> {
  const options = parseFixtureArguments(argv)
  const life = new AbortController()
  const world = createWorld(options, { signal: life.signal, crash: (code) => process.exit(code) })
  if (options.transport === 'stdio') {
    process.once('SIGTERM', () => process.exit(0)) // as the first process of a container it would not end by itself
    await serveStdio(world, processEnds())
    process.exit(0)
  }
  await runHttp(world, life)
}

async function runHttp(world: World, life: AbortController): Promise<void> {
  const http = await serveHttp(world)
  const stop = async () => {
    life.abort(new Error('fixture stopped'))
    await http.close()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  if (process.env[STOP_WITH_STDIN] === '1') process.stdin.resume().once('close', stop)
  process.stdout.write(`listening ${http.url}\n`)
}

function processEnds(): StdioEnds {
  let open = true
  return {
    input: process.stdin,
    write: (text) => {
      if (open) process.stdout.write(text)
    },
    closeOutput: () => {
      open = false
      process.stdout.write('', () => closeSync(1))
    },
    exit: (code) => process.exit(code),
  }
}
