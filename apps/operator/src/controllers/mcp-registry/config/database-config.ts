import { tryParseDuration } from '@thv/kernel/duration'
import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import type { EnvVar } from '../../../deployment/contribution.ts'
import type { FieldProblem } from './server-config.ts'

type DatabaseConfig = NonNullable<CanonicalMCPRegistrySpec['databaseConfig']>

/** The `database` block of the server. Passwords reach it as variables from their Secrets; the operator never reads them. */
export function renderDatabase(config: DatabaseConfig): object {
  const { dbAppUserPasswordSecretRef: _, dbMigrationUserPasswordSecretRef: __, ...rest } = config
  return {
    host: 'postgres',
    port: 5432,
    user: 'db_app',
    migrationUser: 'db_migrator',
    database: 'registry',
    sslMode: 'prefer',
    maxOpenConns: 10,
    maxIdleConns: 2,
    connMaxLifetime: '30m',
    ...rest,
  }
}

export function databaseVariables(config: DatabaseConfig | undefined): EnvVar[] {
  if (config === undefined) return []
  const from = (name: string, { name: secret, key }: { name: string; key: string }): EnvVar => ({
    name,
    valueFrom: { secretKeyRef: { name: secret, key } },
  })
  return [
    from('THV_REGISTRY_DATABASE_PASSWORD', config.dbAppUserPasswordSecretRef),
    from('THV_REGISTRY_DATABASE_MIGRATIONPASSWORD', config.dbMigrationUserPasswordSecretRef),
  ]
}

/** Limits of the server that the schema of the resource does not know. */
export function databaseProblems(config: DatabaseConfig | undefined): FieldProblem[] {
  if (config === undefined) return []
  const { maxOpenConns = 10, maxIdleConns = 2, connMaxLifetime = '30m' } = config
  const problems: FieldProblem[] = []
  const report = (name: string, message: string) => problems.push({ field: `spec.databaseConfig.${name}`, message })
  if (maxOpenConns < 2 || maxOpenConns > 1_000) report('maxOpenConns', 'must be between 2 and 1000')
  if (maxIdleConns > maxOpenConns) report('maxIdleConns', 'must not be more than maxOpenConns')
  const lifetime = tryParseDuration(connMaxLifetime) ?? 0
  if (lifetime < 1_000 || lifetime > 86_400_000) report('connMaxLifetime', 'must be between 1s and 24h')
  return problems
}
