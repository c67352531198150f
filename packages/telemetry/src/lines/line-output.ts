/** Where the lines of a LineWriter go. One write at a time. */
export interface LineOutput {
  readonly maxBatchBytes: number
  /** Before a batch of so many bytes: opens or rotates what has to be. A promise only where it has to wait; it may reject. */
  begin(bytes: number): Promise<void> | undefined
  /** Writes at least one byte from `offset` on, without blocking the thread of JavaScript. */
  write(bytes: Buffer, offset: number, done: WriteCallback): void
  /** The last write failed, and not only for want of room: `begin` opens it again. */
  reset(): void
  close(): Promise<void>
}

export type WriteCallback = (error: NodeJS.ErrnoException | null, written: number) => void

export const BATCH_BYTES = 256 * 1024
