-- Numbers as text, for scripts that store them so. They are integers below 2^53; Lua's own conversion
-- would keep only 14 digits.
local function text(n) return string.format('%.0f', n) end
local function number(s) return s and tonumber(s) end
