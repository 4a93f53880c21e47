import fc from 'fast-check'

/**
 * Randomised tests are the same in every ordinary run, so that a red one means a change and not a dice roll.
 * TIDEMARK_SEED=$RANDOM looks elsewhere; a failure always prints the seed it came from.
 */
export const seed = Number(process.env['TIDEMARK_SEED'] ?? 20_261_118)

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
