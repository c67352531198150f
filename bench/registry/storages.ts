import { startPostgres } from '@thv/testkit/postgres/postgres'
import { postgresProblem } from '@thv/testkit/postgres/postgres-programs'

/** Where a registry may keep its data; `fresh` makes an empty place and gives its configuration as YAML. */
export interface Storages extends AsyncDisposable {
  readonly all: readonly { readonly name: string; fresh(): Promise<string> }[]
}

export async function openStorages(log: (line: string) => void): Promise<Storages> {
  const embedded = { name: 'embedded store', fresh: async () => '' }
  const problem = postgresProblem()
  if (problem !== undefined) {
    log(`without PostgreSQL: ${problem}`)
    return { all: [embedded], [Symbol.asyncDispose]: async () => {} }
  }
  const server = await startPostgres({ fsync: true })
  const fresh = async () => {
    const { host, port, database, user, password } = await server.createDatabase()
    return `database: { host: ${host}, port: ${port}, database: ${database}, user: ${user}, password: ${password}, sslMode: disable }`
  }
  return { all: [embedded, { name: 'PostgreSQL', fresh }], [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}
