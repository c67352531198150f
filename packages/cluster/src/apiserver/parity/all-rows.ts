import { clusterRows } from './cluster-rows.ts'
import { customRows } from './custom-rows.ts'
import { objectRows } from './object-rows.ts'
import type { ParityRow } from './parity-row.ts'
import { patchRows } from './patch-rows.ts'
import { typeRows } from './type-rows.ts'
import { watchRows } from './watch-rows.ts'

export const allRows: readonly ParityRow[] = [...objectRows, ...customRows, ...clusterRows, ...patchRows, ...typeRows, ...watchRows]
