// The distinct hashes of a sparse filter: a table with open addressing. A hash is two halves of 32 bits, because
// BigInts are slower.

const randomOdd = () => (Math.random() * 2 ** 32) | 1;
const [FACTOR_1, FACTOR_2] = [randomOdd(), randomOdd()];
const FIRST_SLOT_BITS = 4;

/**
 * A number whose highest bits select the slot of a hash. The bytes of a filter can come from anyone, so random factors
 * keep their hashes from meeting in one place. High bits have no effect on the low bits of a product: hence the shifts.
 */
export function mixed(high, low) {
    const a = Math.imul(high, FACTOR_1);
    const b = Math.imul((a ^ (a >>> 15)) + low, FACTOR_2);
    return Math.imul(b ^ (b >>> 15), FACTOR_1);
}

export class HashSet {
    #slots; // pairs of high and low half; 0, 0 is a free slot
    #shift;
    #used = 0;
    #hasZero = false;

    constructor(expected = 0) {
        let slotBits = FIRST_SLOT_BITS;
        while (2 ** slotBits * 0.75 <= expected) {
            slotBits++;
        }
        this.#allocate(slotBits);
    }

    get size() {
        return this.#used + (this.#hasZero ? 1 : 0);
    }

    #allocate(slotBits) {
        this.#slots = new Uint32Array(2 ** (slotBits + 1));
        this.#shift = 32 - slotBits;
    }

    /** The index of the hash, or of the free slot where it belongs. */
    #find(high, low) {
        const slots = this.#slots;
        const mask = slots.length - 1;
        let i = (mixed(high, low) >>> this.#shift) << 1;
        while ((slots[i] !== high || slots[i + 1] !== low) && (slots[i] !== 0 || slots[i + 1] !== 0)) {
            i = (i + 2) & mask;
        }
        return i;
    }

    has(high, low) {
        if (high === 0 && low === 0) {
            return this.#hasZero;
        }
        const i = this.#find(high, low);
        return this.#slots[i] !== 0 || this.#slots[i + 1] !== 0;
    }

    add(high, low) {
        if (high === 0 && low === 0) {
            this.#hasZero = true;
            return;
        }
        const i = this.#find(high, low);
        const slots = this.#slots;
        if (slots[i] === 0 && slots[i + 1] === 0) {
            slots[i] = high;
            slots[i + 1] = low;
            this.#used++;
            if (this.#used * 8 > slots.length * 3) {
                this.#grow();
            }
        }
    }

    #grow() {
        const old = this.#slots;
        this.#allocate(32 - this.#shift + 2);
        for (let i = 0; i < old.length; i += 2) {
            if (old[i] !== 0 || old[i + 1] !== 0) {
                const to = this.#find(old[i], old[i + 1]);
                this.#slots[to] = old[i];
                this.#slots[to + 1] = old[i + 1];
            }
        }
    }

    /** Calls visit(high, low) for each hash, in no order. */
    forEach(visit) {
        if (this.#hasZero) {
            visit(0, 0);
        }
        const slots = this.#slots;
        for (let i = 0; i < slots.length; i += 2) {
            if (slots[i] !== 0 || slots[i + 1] !== 0) {
                visit(slots[i], slots[i + 1]);
            }
        }
    }

    copy() {
        const copy = new HashSet();
        copy.#slots = this.#slots.slice();
        copy.#shift = this.#shift;
        copy.#used = this.#used;
        copy.#hasZero = this.#hasZero;
        return copy;
    }

    /** The hashes as in a payload: little-endian, in ascending order. */
    writeTo(payload) {
        const sorted = new BigUint64Array(this.size);
        let n = 0;
        this.forEach((high, low) => {
            sorted[n++] = (BigInt(high) << 32n) | BigInt(low);
        });
        sorted.sort();
        const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
        sorted.forEach((hash, i) => view.setBigUint64(8 * i, hash, true));
    }

    static read(payload) {
        const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
        const set = new HashSet(payload.length / 8);
        for (let offset = 0; offset < payload.length; offset += 8) {
            set.add(view.getUint32(offset + 4, true), view.getUint32(offset, true));
        }
        return set;
    }
}
