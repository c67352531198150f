import { clusterRows } from './cluster-rows.ts'
import { customRows } from './custom-rows.ts'
import { objectRows } from './object-rows.ts'
import type { ParityRow } from './parity-row.ts'

export const allRows: readonly ParityRow[] = [...objectRows, ...customRows, ...clusterRows]
