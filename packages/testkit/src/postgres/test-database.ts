import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { runCommand } from '../cluster/process/run-command.ts'

/** How to reach a server of the harness; plain data, so that it can be given to the workers of a test run. */
export interface PostgresAccess {
  /** The certificate is good for this name, not for the address behind it. */
  readonly host: 'localhost'
  readonly address: '127.0.0.1'
  readonly port: number
  /** Of the authority that signed the server's certificate. */
  readonly caPem: string
  readonly programs: string
  /** Every user that may enter this folder is trusted as any user. */
  readonly socketFolder: string
}

/** A database of its own with a login that owns it. It goes with the server: dropping one while others are busy may take a minute. */
export interface TestDatabase {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string
  /** Runs statements as superuser in this database and returns the rows: columns parted by `|`. */
  sql(statements: string): Promise<string>
}

export interface PostgresUser {
  readonly user: string
  readonly password: string
}

export async function createDatabase(access: PostgresAccess): Promise<TestDatabase> {
  const database = `db_${randomBytes(6).toString('hex')}`
  const { user, password } = await createUser(access, `${database}_owner`)
  await superuserSql(access, 'postgres', `CREATE DATABASE ${database} OWNER ${user} TEMPLATE template0`)
  return {
    host: access.address,
    port: access.port,
    database,
    user,
    password,
    sql: (statements) => superuserSql(access, database, statements),
  }
}

/** A login without any further right. */
export async function createUser(access: PostgresAccess, user = `user_${randomBytes(6).toString('hex')}`): Promise<PostgresUser> {
  const password = randomBytes(12).toString('base64url')
  await superuserSql(access, 'postgres', `CREATE ROLE ${user} LOGIN PASSWORD '${password}'`)
  return { user, password }
}

export async function superuserSql(access: PostgresAccess, database: string, statements: string): Promise<string> {
  const args = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-h', access.socketFolder, '-p', String(access.port), '-U', 'postgres']
  const output = await runCommand(join(access.programs, 'psql'), [...args, '-d', database, '-c', statements])
  return output.trimEnd()
}
