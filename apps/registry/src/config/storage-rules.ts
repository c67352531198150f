import { resolve } from 'node:path'
import { tryParseDuration } from '@thv/kernel/duration'
import type { ConfigFile, DatabaseFile } from './config-schema.ts'
import { type NormaliseContext, problemAt } from './normalise-context.ts'
import type { PostgresConfig, StorageConfig } from './registry-config.ts'

/** The rules of `database` and `storage`. Like `normaliseConfig` it takes what may be of a wrong shape. */
export function storageOf(file: ConfigFile, context: NormaliseContext): StorageConfig | undefined {
  const { database, storage } = file
  if (database && storage) problemAt(context, 'storage', 'cannot stand beside database: PostgreSQL keeps everything')
  if (database) return postgresOf(database, context)
  if (storage?.memory === true && storage.path !== undefined) problemAt(context, 'storage.path', 'cannot stand beside storage.memory')
  if (storage?.memory === true) return { kind: 'sqlite' }
  return {
    kind: 'sqlite',
    path: typeof storage?.path === 'string' ? resolve(context.folder, storage.path) : resolve(context.dataDir, 'registry.db'),
  }
}

function postgresOf(database: DatabaseFile, context: NormaliseContext): PostgresConfig {
  const { user, password, migrationUser, migrationPassword, sslRootCert, connMaxLifetime, ...rest } = database
  if (migrationPassword !== undefined && migrationUser === undefined)
    problemAt(context, 'database.migrationPassword', 'needs database.migrationUser')
  if (rest.maxIdleConns > rest.maxOpenConns) problemAt(context, 'database.maxIdleConns', 'must not be more than maxOpenConns')
  if (typeof sslRootCert === 'string' && !sslRootCert.startsWith('/'))
    problemAt(context, 'database.sslRootCert', 'must be an absolute path')
  if (sslRootCert !== undefined && ['disable', 'allow', 'prefer', 'require'].includes(rest.sslMode))
    problemAt(context, 'database.sslRootCert', 'is looked at only with sslMode verify-ca or verify-full')
  const sameUser = migrationUser === undefined || migrationUser === user
  const migrationSecret = migrationPassword ?? (sameUser ? password : undefined)
  return {
    kind: 'postgres',
    ...rest,
    user,
    ...(password !== undefined && { password }),
    ...(migrationUser !== undefined && { migrationUser }),
    ...(migrationSecret !== undefined && { migrationPassword: migrationSecret }),
    ...(sslRootCert !== undefined && { sslRootCert }),
    connMaxLifetimeMs: (typeof connMaxLifetime === 'string' && tryParseDuration(connMaxLifetime)) || 0,
  }
}
