import { open } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'

/** The connection whose password is looked up. */
export interface PgpassQuery {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

export interface PgpassOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly home?: string
  /** Of the user that the process runs as. */
  readonly account?: () => { readonly homedir: string }
  readonly warn: (message: string) => void
}

const maxBytes = 1024 * 1024

/** From the file that PGPASSFILE names, then from ~/.pgpass. Undefined: neither knows it. */
export async function lookupPgpass(query: PgpassQuery, options: PgpassOptions): Promise<string | undefined> {
  const { env = process.env, account = userInfo, home = homeOf(env, account), warn } = options
  for (const path of [env['PGPASSFILE'], home && join(home, '.pgpass')]) {
    if (!path) continue
    const text = await readPrivateFile(path, warn)
    const password = text === undefined ? undefined : findPassword(text, query)
    if (password !== undefined) return password
  }
  return undefined
}

/** As libpq has it: HOME, or the folder of the account where HOME is not set or empty. A user of a container may have neither. */
function homeOf(env: NodeJS.ProcessEnv, account: NonNullable<PgpassOptions['account']>): string | undefined {
  if (env['HOME']) return env['HOME']
  try {
    return account().homedir
  } catch {
    return undefined
  }
}

/** The first line that fits wins: `host:port:database:user:password`, with `*` for any and a backslash before `:` and `\`. */
export function findPassword(text: string, query: PgpassQuery): string | undefined {
  const wanted = [query.host, String(query.port), query.database, query.user]
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const { fields, rest } = splitFields(line, wanted.length)
    if (fields.length < wanted.length) continue
    if (fields.every((field, index) => field === '*' || plain(field) === wanted[index])) return plain(rest)
  }
  return undefined
}

/** Colons behind the last field belong to the password. */
function splitFields(line: string, count: number): { fields: string[]; rest: string } {
  const fields: string[] = []
  let start = 0
  for (let at = 0; at < line.length && fields.length < count; at++) {
    if (line[at] === '\\') at++
    else if (line[at] === ':') {
      fields.push(line.slice(start, at))
      start = at + 1
    }
  }
  return { fields, rest: line.slice(start) }
}

function plain(field: string): string {
  return field.replace(/\\(.)/g, '$1')
}

/** Kubernetes mounts a Secret as root's, readable for the group of the pod. */
function isPrivate({ mode, uid }: { readonly mode: number; readonly uid: number }): boolean {
  return (mode & 0o077) === 0 || (uid === 0 && (mode & 0o037) === 0)
}

/** A file that others may read is not used: that is how every client of PostgreSQL does it. */
async function readPrivateFile(path: string, warn: (message: string) => void): Promise<string | undefined> {
  try {
    await using file = await open(path, 'r')
    const stat = await file.stat()
    if (!stat.isFile() || stat.size > maxBytes) warn(`password file ${path} is ignored: it is no plain file of at most 1 MiB`)
    else if (!isPrivate(stat))
      warn(`password file ${path} is ignored: others may read it; its mode must be 0600 or less (0440 where root owns it)`)
    else return await file.readFile('utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') warn(`password file ${path} is ignored: it cannot be read (${code})`)
  }
  return undefined
}
