import { environmentArguments } from './fixture-arguments.ts'
import { runFixture } from './fixture-run.ts'

// The fixture in a container: what MCP_TRANSPORT, MCP_PORT and MCP_HOST say, then its arguments.
runFixture([...environmentArguments(process.env), ...process.argv.slice(2)]).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(2)
})
