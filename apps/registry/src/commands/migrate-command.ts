import { ThvError } from '@thv/kernel/errors'
import { createLogger } from '@thv/telemetry/log'
import type { PostgresConfig } from '../config/registry-config.ts'
import { migrateDown, migrateUp, schemaState } from '../store/postgres/migrate.ts'
import type { CommandEnv } from './command-env.ts'
import { loadConfig } from './load-config.ts'

export interface MigrateFlags {
  readonly config: string
  readonly yes?: boolean
  readonly numSteps?: string
}

const MAX_STEPS = 1_000

export async function migrateUpCommand(flags: MigrateFlags, command: CommandEnv): Promise<void> {
  const steps = stepsOf(flags)
  const database = await databaseOf(flags, command)
  const { out, log = createLogger(), clock } = command
  const { version, latest } = await schemaState(database, { log, clock })
  const target = Math.min(latest, version + (steps ?? latest))
  if (version === latest) {
    await migrateUp(database, { log, clock }) // the rights of the server's user may have been missing
    out(`the database is at version ${version}: nothing to do\n`)
    return
  }
  await confirm(command, flags, {
    question: `Migrate the database ${nameOf(database)} from version ${version} to ${target}.`,
    words: ['yes', 'y'],
  })
  const { to } = await migrateUp(database, { log, clock, ...(steps !== undefined && { steps }) })
  out(`the database is at version ${to}\n`)
}

export async function migrateDownCommand(flags: MigrateFlags, command: CommandEnv): Promise<void> {
  const steps = stepsOf(flags)
  if (steps === undefined) throw new ThvError('usage', 'migrate down needs --num-steps: how many versions to go back')
  const database = await databaseOf(flags, command)
  const { out, log = createLogger(), clock } = command
  await confirm(command, flags, {
    question: `Take back ${steps} version${steps === 1 ? '' : 's'} of the database ${nameOf(database)}. What they hold is LOST.`,
    words: ['yes'],
  })
  const { to } = await migrateDown(database, steps, { log, clock })
  out(`the database is at version ${to}\n`)
}

function stepsOf({ numSteps }: MigrateFlags): number | undefined {
  if (numSteps === undefined) return undefined
  const steps = Number(numSteps)
  if (!Number.isInteger(steps) || steps < 1 || steps > MAX_STEPS) throw new ThvError('usage', `--num-steps must be from 1 to ${MAX_STEPS}`)
  return steps
}

async function databaseOf({ config: file }: MigrateFlags, { env }: CommandEnv): Promise<PostgresConfig> {
  const { config } = await loadConfig({ config: file }, env)
  if (config.storage.kind === 'postgres') return config.storage
  throw new ThvError('usage', `${file} has no database: the embedded store is migrated when it is opened`)
}

const nameOf = ({ database, host, port }: PostgresConfig) => `${database} at ${host}:${port}`

async function confirm(
  { ask, out }: CommandEnv,
  { yes }: MigrateFlags,
  { question, words }: { question: string; words: readonly string[] },
): Promise<void> {
  if (yes) return
  const answer = await ask?.(`${question}\nContinue? (yes/no): `)
  if (answer === undefined) throw new ThvError('usage', 'there is no terminal to confirm on: pass --yes')
  if (words.includes(answer.trim().toLowerCase())) return
  out('nothing was done\n')
  throw new ThvError('aborted', 'not confirmed')
}
