import { type SourceConfig, sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import { jsonEqual } from '@thv/kernel/json'
import type { Creation, SourceRecord } from '../registry-store.ts'
import type { Sql } from './database.ts'
import type { Stamp } from './revision.ts'
import { isManaged } from './rows.ts'

export async function insertSource(sql: Sql, row: { source: SourceConfig; creation: Creation; stamp: Stamp }): Promise<void> {
  const { source, creation, stamp } = row
  const managed = isManaged(source)
  await sql(
    `INSERT INTO source (name, type, config, creation, created_at, updated_at, phase, due_at)
     VALUES ($1, $2, $3, $4, $5, $5, $6, CASE WHEN $7 THEN NULL ELSE clock_timestamp() END)`,
    [source.name, sourceTypeOf(source), JSON.stringify(source), creation, stamp.now, managed ? 'complete' : 'pending', managed],
  )
}

/** False: it is as it was. With more than other claims it is due, forgets what it fetched last, and no lease holds any more. */
export async function updateSource(sql: Sql, row: { old: SourceRecord; source: SourceConfig; stamp: Stamp }): Promise<boolean> {
  const { old, source, stamp } = row
  if (jsonEqual(old.config, source)) return false
  const again = !isManaged(source) && !jsonEqual({ ...old.config, claims: null }, { ...source, claims: null })
  await sql(`UPDATE source SET type = $2, config = $3, updated_at = $4${again ? RESET : ''} WHERE id = $1`, [
    old.id,
    sourceTypeOf(source),
    JSON.stringify(source),
    stamp.now,
  ])
  return true
}

const RESET = ', hash = NULL, state = NULL, due_at = clock_timestamp(), lease_owner = NULL, lease_token = NULL, lease_until = NULL'

/** With its entries. */
export async function deleteSourceRow(sql: Sql, id: number): Promise<void> {
  await sql('DELETE FROM source WHERE id = $1', [id])
}
